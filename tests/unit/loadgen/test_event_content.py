"""The checksum of an event's bytes is that of its columns."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.content import EVENT_SCHEMA, canonical_text, checksums, event_columns, with_room
from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.events import EVENT_DDL, EventMix, OrderEvents

GENERATOR = OrderEvents(seed=1, worker=0, prefix="t", mix=EventMix(malformed=0))
EVENTS = [record for second in range(4) for record in GENERATOR.take(200, 1.79e9 + second / 7)]


def as_text(events: list[dict[str, object]]) -> pa.Table:
    """As a JSON reader gives them: times are text."""
    return pa.Table.from_pylist(events)


def as_typed(events: list[dict[str, object]]) -> pa.Table:
    """As a table gives them: times are timestamps."""
    return event_columns(as_text(events))


@pytest.mark.parametrize("columns", [as_text, as_typed])
def test_the_bytes_sent_are_written_again_from_the_columns(columns) -> None:  # type: ignore[no-untyped-def]
    table = columns([json.loads(record.data) for record in EVENTS])
    assert canonical_text(table).to_pylist() == [record.data.decode() for record in EVENTS]
    assert checksums(canonical_text(table)).tolist() == [crc32(record.data) for record in EVENTS]


@given(st.integers(0, 799), st.sampled_from(EVENT_SCHEMA.names), st.data())
def test_any_altered_field_alters_the_text(number: int, field: str, data: st.DataObject) -> None:
    event = json.loads(EVENTS[number].data)
    old = event[field]
    changes: dict[str, st.SearchStrategy[object]] = {
        "version": st.integers(-5, 2**62),
        "amount": st.floats(allow_nan=False),
    }
    new: object
    if field.endswith("_at"):
        moment = datetime.fromisoformat(old) + timedelta(microseconds=data.draw(st.integers(1, 10**12)))
        new = moment.isoformat()
    else:
        new = data.draw((changes.get(field, st.text()) | st.none()).filter(lambda value: value != old))
    table = as_typed([event | {field: new}, event])
    altered, intact = canonical_text(table).to_pylist()
    assert intact == EVENTS[number].data.decode()
    assert altered != intact


def test_texts_have_room_for_more_than_two_gigabytes() -> None:
    """Of all that an audit makes one array of; Arrow's plain strings end there, and the audit with them."""
    table = as_typed([json.loads(record.data) for record in EVENTS[:2]])
    assert canonical_text(table).type == pa.large_string()
    assert {field.type for field in with_room(table).schema} & {pa.string(), pa.large_string()} == {pa.large_string()}


def test_checksums_of_slices_chunks_and_nothing() -> None:
    values = pa.array([b"a", b"bc", None, b"", b"d" * 5000])
    expected = [crc32(value.as_py() or b"") for value in values]
    assert checksums(values).tolist() == expected
    assert checksums(values[1:4]).tolist() == expected[1:4]
    assert checksums(pa.chunked_array([values, values[:2]])).tolist() == expected + expected[:2]
    assert checksums(pa.chunked_array([], pa.binary())).tolist() == []


def test_a_missing_column_is_named() -> None:
    with pytest.raises(LakeError, match="note"):
        canonical_text(as_typed([json.loads(EVENTS[0].data)]).drop_columns(["note"]))


def test_what_cannot_be_read_alters_its_own_event_alone() -> None:
    events = [json.loads(record.data) for record in EVENTS]
    unreadable = {3: "yesterday", 4: "+10000-01-01T00:00:00.000Z", 400: "2026-01-01T00:00:00.000", 799: ""}
    for number, text in unreadable.items():
        events[number]["created_at"] = text
    table = pa.concat_tables([as_text(events[:500]), as_text(events[500:])])
    sums = checksums(canonical_text(table)).tolist()
    assert [number for number, record in enumerate(EVENTS) if sums[number] != crc32(record.data)] == list(unreadable)
    assert len(canonical_text(table.slice(0, 0))) == 0


def test_the_ddl_names_the_columns_in_order() -> None:
    assert [column.split()[0] for column in EVENT_DDL.split(", ")] == EVENT_SCHEMA.names
