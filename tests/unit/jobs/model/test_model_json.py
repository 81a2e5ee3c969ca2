"""The log's JSON: what is written is what is read, and nothing else is accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakestream.errors import CorruptLogError, InvalidValueError
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    FileEntry,
    Finding,
    Loss,
    RecordFormat,
    ShardStats,
    SinkCommit,
    SpanProgress,
    Taken,
    at,
)
from lakestream.testing.strategies import plans, stats_of

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SINK = SinkCommit(7, 99, (FileEntry("dt=1/b0.json", 7, 99, "dt=1"),), "20260131120000000", {"put": 0.5}, file_groups=4)

FEWER = settings(max_examples=settings().max_examples // 4)
"""Of plans that are dear to draw, where it is a field that is left out."""


@given(plans())
def test_a_plan_survives_json_and_has_the_same_bytes_again(plan: BatchPlan) -> None:
    found = BatchPlan.from_json(plan.to_json())
    assert found == plan
    assert found.to_json() == plan.to_json()


@given(plans(), st.none() | st.just(SINK), st.data())
def test_a_commit_survives_json(plan: BatchPlan, sink: SinkCommit | None, data: st.DataObject) -> None:
    shards = data.draw(stats_of(plan))
    commit = BatchCommit.of(
        plan, epoch=3, committed_at=NOW, sink=sink, rejects=SINK.files, shards=shards, seconds={"plan": 0.1}
    )
    commit = commit.finding([Finding("shardId-0", (), 3), Finding("shardId-1", (), 4)])
    assert commit.misplaced == 7
    assert BatchCommit.from_json(commit.to_json()) == commit
    assert commit.records == sum(s.records for s in shards)
    assert commit.rows_written == (7 if sink else 0)


def test_records_as_kinesis_counts_them_are_told_apart_from_what_earlier_releases_read() -> None:
    shards = (ShardStats("shardId-0", 500, 1000, NOW, NOW, 5, 1800), ShardStats("shardId-1", 7, 70, NOW, NOW))
    document = orjson.loads(BatchCommit.of(an_empty_plan(), epoch=1, committed_at=NOW, shards=shards).to_json())
    assert [len(row) for row in document["shards"]] == [5, 5]
    assert [shard.stored_bytes for shard in BatchCommit.from_json(orjson.dumps(document)).shards] == [1800, 70]
    assert [document.pop("kinesisRecords"), document.pop("kinesisBytes")] == [[5, None], [1800, None]]
    old = BatchCommit.from_json(orjson.dumps(document))
    assert [old.kinesis_records, old.records] == [507, 507]
    assert [shard.stored_bytes for shard in old.shards] == [1000, 70]


def test_without_aggregates_and_filters_a_commit_says_nothing_of_them() -> None:
    shards = (ShardStats("shardId-0", 500, 1000, NOW, NOW),)
    commit = BatchCommit.of(an_empty_plan(), epoch=1, committed_at=NOW, shards=shards)
    assert b"kinesis" not in commit.to_json()
    assert b"filtered" not in commit.to_json()
    assert (commit.kinesis_records, commit.filtered) == (500, 0)


def test_what_a_filter_left_out_is_among_what_was_read() -> None:
    shards = (ShardStats("a", 500, 1000, NOW, NOW, filtered=499), ShardStats("b", 7, 70, NOW, NOW))
    commit = BatchCommit.of(an_empty_plan(), epoch=1, committed_at=NOW, shards=shards, quarantined=8)
    assert (commit.records, commit.filtered) == (507, 499)
    assert BatchCommit.from_json(commit.to_json()) == commit
    with pytest.raises(InvalidValueError, match="9 of 8 records quarantined"):
        replace(commit, quarantined=9)


@given(plans())
@FEWER
def test_a_plan_of_a_release_that_did_not_ask_for_hash_keys_is_read_and_so_is_ours_by_it(plan: BatchPlan) -> None:
    document = orjson.loads(plan.to_json())
    assert {len(row) for row in document["ranges"]} <= {9}
    document.pop("hashKeys", None)
    ranges = tuple(replace(piece, hash_keys=None) for piece in plan.ranges)
    assert BatchPlan.from_json(orjson.dumps(document)) == replace(plan, ranges=ranges)


@given(plans())
@FEWER
def test_a_plan_of_a_release_without_definitions_is_read(plan: BatchPlan) -> None:
    document = orjson.loads(plan.to_json())
    del document["definition"]
    assert BatchPlan.from_json(orjson.dumps(document)) == replace(plan, definition=None)


@given(plans())
@FEWER
def test_a_release_that_does_not_know_of_a_span_leaves_it_while_it_is_read(plan: BatchPlan) -> None:
    version = orjson.loads(plan.to_json())["version"]
    commit = orjson.loads(BatchCommit.of(plan, epoch=1, committed_at=NOW).to_json())
    reads_span = plan.spans or (plan.taken and plan.taken.span and not plan.taken.is_done)
    if plan.definition and plan.definition.record_format is not RecordFormat.JSON:
        # What it has in the table of a batch that is begun, the other would have in quarantine.
        assert version == (7 if plan.definition.record_format is RecordFormat.TEXT else 8)
        return
    expected = 4 if reads_span else 3 if plan.backfills else 2 if plan.taken else 1
    if plan.definition and plan.definition.filters:
        # It would pass over them in the document as well, and write the records of other tables from there on.
        assert (version, commit["version"]) == (6, 6)
        return
    # Of a restore only the plan matters: behind its commit the cursors are those of the table.
    assert (version, commit["version"]) == (5 if plan.restore else expected, expected)


def test_plans_and_commits_of_the_last_release_are_read() -> None:
    """As they were written before there were spans."""
    plan = replace(an_empty_plan(), taken=Taken(3, 1, 4))
    commit = BatchCommit.of(plan, epoch=1, committed_at=NOW)
    for document, read in ((plan, BatchPlan.from_json), (commit, BatchCommit.from_json)):
        fields = orjson.loads(document.to_json())
        assert fields["readmitted"] == [3, 1, 4]
        assert not {"span", "spans", "ofSpan", "endsRequest", "readFrom"} & fields.keys()
        assert fields["version"] == 2
        assert read(document.to_json()) == document


LOST = Loss("shardId-000000000000", None, None, NOW, NOW)


def test_a_commit_knows_what_the_one_before_knew_of_the_same_span() -> None:
    span = SpanProgress(lost=(LOST,))
    plan = replace(an_empty_plan(), taken=Taken(1, 0, 1, span))
    first = replace(BatchCommit.of(plan, epoch=1, committed_at=NOW), of_span=True, records=5).behind(None)
    found = replace(LOST, start=at(7))
    second = replace(first, records=2, losses=(found,), taken=plan.taken).behind(first)
    assert second.taken is not None
    assert second.taken.span == SpanProgress(lost=(LOST, found), records=7)
    of_stream = replace(BatchCommit.of(plan, epoch=1, committed_at=NOW), records=9, losses=(found,))
    assert of_stream.behind(second).taken == second.taken, "what the stream gives and loses is not of the span"
    another = replace(first, taken=Taken(2, 0, 1, SpanProgress())).behind(second)
    assert another.taken == Taken(2, 0, 1, SpanProgress(records=5))


def an_empty_plan() -> BatchPlan:
    return BatchPlan(0, 1, NOW, None, NOW, True, (), ())


def changed(**fields: object) -> bytes:
    return orjson.dumps({**orjson.loads(an_empty_plan().to_json()), **fields})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a plan document"),
        (b"[]", "not a plan document"),
        (b'{"kind":"plan"}', "not a plan document"),
        (changed(kind="commit"), "expected a plan document, found a 'commit'"),
        (changed(version=9), "has version 9; this release reads versions up to 8"),
        (changed(batch=-1), "batch must not be negative"),
        (changed(horizon=None), "a time is missing"),
        (changed(horizon="0001-01-01T00:00:00+10:00"), "damaged: OverflowError"),
        (changed(cursors=[["shardId-0", "dancing"]]), "not a cursor"),
        (
            changed(cursors=[["shardId-0", "reading", "near 5", "2026-01-31T12:00:00Z", None]]),
            "not a position: 'near 5'",
        ),
        (changed(ranges=[["shardId-0"]]), "damaged"),
        (changed(definition={"schema": "id string"}), "damaged"),
        (changed(definition={"schema": "id string", "transform": None, "deleteWhen": None, "rules": 0}), "rules"),
    ],
)
def test_a_damaged_plan_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(CorruptLogError, match=message):
        BatchPlan.from_json(content)


def test_a_commit_is_not_a_plan() -> None:
    commit = BatchCommit.of(an_empty_plan(), epoch=1, committed_at=NOW)
    with pytest.raises(CorruptLogError, match="expected a plan document"):
        BatchPlan.from_json(commit.to_json())
    with pytest.raises(CorruptLogError, match="expected a commit document"):
        BatchCommit.from_json(an_empty_plan().to_json())
