"""Values of the model are valid once built."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.errors import InvalidValueError
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Definition,
    Filter,
    Finding,
    Finished,
    Loss,
    Position,
    Reading,
    RecordFormat,
    ShardRange,
    after,
    at,
    united,
)
from lakestream.testing.strategies import positions, sequences

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@given(positions)
def test_a_position_survives_text(position: Position) -> None:
    assert Position.parse(str(position)) == position


@given(sequences, sequences)
def test_cuts_are_ordered_as_the_records_around_them(one: int, other: int) -> None:
    assert at(one) < after(one)
    if one < other:
        assert after(one) < at(other)


@given(sequences, st.booleans())
def test_sequence_numbers_are_ordered_as_numbers(sequence: int, is_after: bool) -> None:
    # As text, "9" would come behind "10".
    assert Position(sequence, is_after) < at(sequence * 10 + 1)


def a_range(**changes: object) -> ShardRange:
    made = ShardRange("shardId-0", at(10), at(20), 10, NOW, NOW, False, 0, 0)
    return replace(made, **changes)  # type: ignore[arg-type]


def a_plan(**changes: object) -> BatchPlan:
    cursor = Reading("shardId-0", at(20), NOW, None)
    made = BatchPlan(0, 1, NOW, NOW, NOW, True, (a_range(),), (cursor,))
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": 9}, "first record 9 is not in"),
        ({"first": 20}, "first record 20 is not in"),
        ({"start": after(10)}, "first record 10 is not in"),
        ({"shard_id": ""}, "shard_id"),
        ({"closes_shard": True}, "ends after a record, not at 20"),
        ({"first_arrival": datetime(2026, 1, 31)}, "first_arrival must be a time in UTC"),  # noqa: DTZ001
        ({"end_arrival": NOW.astimezone(timezone(timedelta(hours=1)))}, "end_arrival must be a time in UTC"),
        ({"task": -1}, "task must not be negative, got -1"),
    ],
)
def test_a_range_is_checked(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        a_range(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": None}, "a base is given exactly when there are ranges"),
        ({"ranges": ()}, "a base is given exactly when there are ranges"),
        ({"cursors": ()}, "the range of shardId-0 ends at 20, its cursor stands None"),
        ({"cursors": (Finished("shardId-0"),)}, "its cursor stands None"),
        ({"cursors": (Reading("shardId-0", after(20), NOW, None),)}, "its cursor stands after 20"),
        ({"ranges": (a_range(task=1),)}, "tasks must be numbered from 0"),
        ({"ranges": (a_range(), a_range())}, "ranges must be sorted by shard without duplicates"),
    ],
)
def test_a_plan_is_checked(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        a_plan(**changes)


def test_a_known_record_is_not_the_tip() -> None:
    with pytest.raises(InvalidValueError, match="it is not the tip"):
        Reading("shardId-0", at(1), NOW, tip_seen=NOW)


def test_what_is_unread_is_younger_than_the_last_record_and_the_tip() -> None:
    later = NOW + timedelta(hours=1)
    assert Reading("s", at(1), NOW, None).unread_since == NOW
    assert Reading("s", after(1), NOW, None).unread_since == NOW
    assert Reading("s", after(1), NOW, later).unread_since == later


def test_ranges_are_grouped_by_task() -> None:
    cursors = tuple(Reading(f"shardId-{i}", at(20), NOW, None) for i in range(3))
    pieces = tuple(a_range(shard_id=f"shardId-{i}", task=task) for i, task in enumerate((1, 0, 1)))
    plan = a_plan(ranges=pieces, cursors=cursors)
    assert plan.tasks == ((pieces[1],), (pieces[0], pieces[2]))
    assert a_plan(ranges=(), base=None).tasks == ()
    assert a_plan(ranges=(), base=None).is_heartbeat


def test_no_more_records_are_quarantined_than_were_read() -> None:
    with pytest.raises(InvalidValueError, match="1 of 0 records quarantined"):
        BatchCommit.of(a_plan(), epoch=1, committed_at=NOW, quarantined=1)


def loss(start: int, end: int, shard_id: str = "s-0") -> Loss:
    return Loss(shard_id, at(start), at(end), NOW, NOW)


def test_of_two_readings_of_a_range_the_greater_loss_counts() -> None:
    """Whatever comes first or twice; a second loss in the same range stays beside it."""
    told = [
        Finding("s-1", (loss(1, 2, "s-1"),)),
        Finding("s-0", (loss(1, 5), loss(10, 12))),
        Finding("s-0", (loss(1, 9),)),
    ]
    expected = (Finding("s-0", (loss(1, 9), loss(10, 12))), Finding("s-1", (loss(1, 2, "s-1"),)))
    for order in itertools.permutations([*told, told[0]]):
        assert united(order) == expected


def test_another_filter_is_another_definition() -> None:
    plain = Definition("id string", None, None)
    orders = replace(plain, filters=(Filter(("metadata", "table-name"), frozenset({"orders", "returns"})),))
    assert plain.differences(orders) == "spec.filter"
    assert orders.digest != plain.digest
    assert Definition.from_fields(json.loads(json.dumps(orders.to_fields()))) == orders
    assert "filter" not in plain.to_fields(), "as earlier releases write it"


@pytest.mark.parametrize("record_format", [RecordFormat.TEXT, RecordFormat.AVRO, RecordFormat.JSONL])
def test_another_format_is_another_definition(record_format: RecordFormat) -> None:
    plain = Definition("line string", None, None)
    other = replace(plain, record_format=record_format)
    assert plain.differences(other) == "spec.format"
    assert other.digest != plain.digest
    assert Definition.from_fields(json.loads(json.dumps(other.to_fields()))) == other
    assert "format" not in plain.to_fields(), "as earlier releases write it"


def test_what_decides_the_names_of_files_alone_makes_no_other_definition_of_rows() -> None:
    """Records that one has rejected the other rejects as well."""
    plain = Definition("id string", None, None)
    compressed = replace(plain, compression="zstd")
    assert compressed != plain
    assert compressed.digest == plain.digest
    assert plain.differences(compressed) == "json.compression"
    assert [Definition.from_fields(one.to_fields()) for one in (plain, compressed)] == [plain, compressed]
    assert "compression" not in plain.to_fields(), "as earlier releases write it"
