"""What a batch's requests cost the driver goes by their kind, and by what is in the answers."""

from __future__ import annotations

from collections import Counter

import pytest

from lakestream_bench.planning import INTERVAL, RequestCosts, SteadyStream, measure


def test_requests_cost_by_their_kind_and_by_the_records_in_their_answers() -> None:
    calls = {"GetShardIterator": 3.0, "GetRecords": 2.0, "records": 100.0}
    assert RequestCosts(iterator=0.1, page=0.2, record=0.003).of(calls) == pytest.approx(0.3 + 0.4 + 0.3)


def test_what_the_stream_answers_is_counted() -> None:
    stream = SteadyStream(1, 50)
    stream.time += INTERVAL
    (shard,) = stream.list_shards()
    page = stream.get_records(stream.get_shard_iterator(shard.shard_id, None), 10_000)
    assert stream.calls == Counter(ListShards=1, GetShardIterator=1, GetRecords=1, records=len(page.sequences))


def test_a_planner_learns_from_each_batch_what_was_in_it() -> None:
    """Of shards of which it knows that they have much it asks for the record that ends their part of a batch; of
    others it reads all that there is."""
    by_record = RequestCosts(0.0, 0.0, 1.0)
    assert measure(2, 50, 1, by_record).requests == 2 * 1
    assert measure(2, 4, 1, by_record).requests >= 2 * 40
