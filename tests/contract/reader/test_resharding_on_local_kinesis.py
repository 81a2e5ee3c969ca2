"""Orders to change a stream's shards, against a server that keeps Kinesis's rules."""

from __future__ import annotations

import pytest

from lakestream.control.resharding import look
from lakestream.testing.consumer import Consume
from lakestream_api import Resharding
from lakestream_localkinesis.testing import LocalKinesis


def test_shards_are_doubled_once(server: LocalKinesis, consume: Consume) -> None:
    server.create_stream("to-reshard", shards=2)
    client = consume("to-reshard").client
    told, again = look(client, 4)
    assert (told, again is not None) == (Resharding(ordered=4, open_shards=2, updating=True), True)
    server.client().get_waiter("stream_exists").wait(StreamName="to-reshard", WaiterConfig={"Delay": 1})
    assert look(client, 4) == (Resharding(ordered=4, open_shards=4), None)


def test_kinesis_is_asked_once_and_later_again(server: LocalKinesis, consume: Consume) -> None:
    server.create_stream("failing", shards=2)
    client = consume("failing").client
    server.faults.internal_failure("UpdateShardCount", times=1)
    told, again = look(client, 3)
    assert (told, again is not None) == (Resharding(ordered=3, open_shards=2), True)
    assert look(client, 3)[0].updating


@pytest.mark.parametrize(
    ("on_demand", "ordered", "problem"), [(True, 8, "ON_DEMAND"), (False, 8, "over double"), (False, 1, "below half")]
)
def test_what_kinesis_refuses_is_told_in_its_words(
    server: LocalKinesis, consume: Consume, on_demand: bool, ordered: int, problem: str
) -> None:
    name = f"refusing-{ordered}-{on_demand}"
    server.create_stream(name, shards=3, on_demand=on_demand)
    told, again = look(consume(name).client, ordered)
    assert problem in told.problem
    assert again is not None
