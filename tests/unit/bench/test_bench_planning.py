"""What a batch's requests cost the driver goes by their kind, and by what is in the answers."""

from __future__ import annotations

from collections import Counter

import pytest

from lakestream_bench.planning import INTERVAL, RequestCosts, SteadyStream, measure


def test_requests_cost_by_their_kind_and_by_the_records_in_their_answers() -> None:
    calls = {"GetShardIterator": 3.0, "GetRecords": 2.0, "records": 100.0}
    assert RequestCosts(iterator=0.1, page=0.2, record=0.003).of(calls) == pytest.approx(0.3 + 0.4 + 0.3)


def test_what_a_planner_reads_to_find_the_end_of_a_batch_is_counted() -> None:
    stream = SteadyStream(1, 50)
    stream.time += INTERVAL
    (shard,) = stream.list_shards()
    page = stream.get_records(stream.get_shard_iterator(shard.shard_id, None), 10_000)
    assert stream.calls == Counter(ListShards=1, GetShardIterator=1, GetRecords=1, records=len(page.sequences))
    free = RequestCosts(0.0, 0.0, 0.0)
    by_record = RequestCosts(0.0, 0.0, 1.0)
    # Of the ten seconds of a batch.
    assert measure(2, 50, 1, free).requests == 0
    assert measure(2, 50, 1, by_record).requests >= 2 * 500
