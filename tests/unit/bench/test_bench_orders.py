"""A stutter of the machine makes more records due at once than shards take; none may be lost for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakestream_bench._ingestion import Orders
from lakestream_localkinesis.testing import LocalKinesis

THROTTLED = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "Rate exceeded"}


class Stream:
    """Takes so many records until time passes."""

    def __init__(self, room: int) -> None:
        self.room = self.left = room
        self.taken: list[bytes] = []
        self.pauses: list[float] = []

    def put_records(self, *, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        results = [self._put(record["Data"]) for record in Records]
        return {"FailedRecordCount": sum("ErrorCode" in result for result in results), "Records": results}

    def _put(self, data: bytes) -> dict[str, str]:
        if not self.left:
            return THROTTLED
        self.left -= 1
        self.taken.append(data)
        return {"ShardId": "s0", "SequenceNumber": str(len(self.taken))}

    def pause(self, seconds: float) -> None:
        self.left = self.room
        self.pauses.append(seconds)

    def orders(self) -> Orders:
        return Orders(cast(LocalKinesis, SimpleNamespace(client=lambda: self)), pause=self.pause)


def test_refused_records_are_put_again_until_all_are_taken() -> None:
    stream = Stream(room=300)
    orders = stream.orders()
    orders.put(1_000)
    assert len(stream.taken) == len(set(stream.taken)) == 1_000
    assert orders.acknowledged == 1_000
    # 500 find room for 300; then 200 for 200, and so on for the other half.
    assert orders.throttled > 0
    assert all(seconds > 0 for seconds in stream.pauses)


def test_nothing_is_counted_as_refused_when_there_is_room() -> None:
    stream = Stream(room=10_000)
    orders = stream.orders()
    orders.put(1_000)
    assert (orders.acknowledged, orders.throttled, stream.pauses) == (1_000, 0, [])


def test_a_stream_that_takes_nothing_at_all_ends_it() -> None:
    stream = Stream(room=0)
    orders = stream.orders()
    with pytest.raises(RuntimeError, match="10 records were refused 600 times"):
        orders.put(10)
    assert (orders.acknowledged, orders.throttled) == (0, 6_000)
