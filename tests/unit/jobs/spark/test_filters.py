"""Which records a filter takes, told as a plain reading of their JSON tells it."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakestream.kinesis.batches import REASON, SCHEMA
from lakestream.kinesis.texts import expanded, texts
from lakestream.model import Filter
from lakestream.spark.filters import taken, taker
from lakestream.testing.raw import raw

ORDERS = (
    Filter(("metadata", "schema-name"), frozenset({"shop"})),
    Filter(("metadata", "table-name"), frozenset({"orders", "returns"})),
)


def at(path: str, *values: str) -> tuple[Filter, ...]:
    return (Filter(tuple(path.split(".")), frozenset(values)),)


@pytest.mark.parametrize(
    ("record", "is_taken"),
    [
        ('{"metadata":{"schema-name":"shop","table-name":"orders"}}', True),
        ('{"metadata": {"table-name" : "returns", "schema-name" : "shop" }, "data": {"id": [1, {"n": null}]}}', True),
        ('{"metadata":{"schema-name":"shop","table-name":"customers"}}', False),
        ('{"metadata":{"schema-name":"Shop","table-name":"orders"}}', False),
        ('{"metadata":{"table-name":"orders"}}', False),
        ('{"metadata":{"schema-name":"shop","table-name":null}}', False),
        ('{"metadata":null}', False),
        ('{"metadata":"shop"}', False),
        ('{"metadata":[{"schema-name":"shop","table-name":"orders"}]}', False),
        ('{"metadata":{"schema-name":"shop","table-name":["orders"]}}', False),
        ("{}", False),
    ],
)
def test_a_record_is_taken_if_it_has_one_of_the_values_of_each_filter(record: str, is_taken: bool) -> None:
    assert taker(ORDERS)(record.encode()) is is_taken


@pytest.mark.parametrize(
    "record",
    [
        r'{"m\u0065tadata":{"schema-name":"sh\u006fp","table-name":"orders"}}',
        '{"metadata":{"schema-name":"shop","table-name":"x","table-name":"orders"}}',
        '{"metadata":{"schema-name":"shop"},"metadata":{"schema-name":"shop","table-name":"orders"}}',
    ],
)
def test_other_ways_to_write_it_are_the_same(record: str) -> None:
    """Of a name that is there twice the last value counts, as everywhere."""
    assert taker(ORDERS)(record.encode())


def test_the_last_of_two_values_counts_where_it_is_another() -> None:
    assert not taker(at("t", "a"))(b'{"t":"a","t":"b"}')


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"DELETE",
        b"null",
        b'["orders"]',
        b'{"t":"b"}{"t":"a"}',
        b'{"t":"b"',
        b'{"t":"b","x":"\xff"}',
        b'{"t":"b","x":"\\ud800"}',
        b'{"x":NaN}',
        b"[" * 100_000,
    ],
)
def test_what_nobody_can_say_the_table_of_goes_on_to_quarantine(record: bytes) -> None:
    assert taker(at("t", "a"))(record)


@pytest.mark.parametrize(
    ("written", "value", "is_taken"),
    [
        ("2", "2", True),
        ('"2"', "2", True),
        ("1.10", "1.10", True),
        ("1.1", "1.10", False),
        ("2.0", "2", False),
        ("true", "true", True),
        ("false", "true", False),
        ("null", "null", False),
        ("123456789012345678901234567890", "123456789012345678901234567890", True),
        (r'"a\"b"', 'a"b', True),
        (r'"a\/b"', "a/b", True),
        ('"ä"', "ä", True),
        (r'"\u00e4"', "ä", True),
        ('"a"', '"a"', False),
        ("{}", "{}", False),
    ],
)
def test_numbers_and_booleans_are_taken_as_they_are_written(written: str, value: str, is_taken: bool) -> None:
    assert taker(at("t", value))(f'{{"t": {written} }}'.encode()) is is_taken


@pytest.mark.parametrize("name", ["a b", "ä", 'a"b', "a\\b", "a\tb", "a.b", ""])
def test_names_may_be_any(name: str) -> None:
    filters = (Filter((name, "t"), frozenset({"x"})),)
    assert taker(filters)(json.dumps({name: {"t": "x"}}).encode())
    assert not taker(filters)(json.dumps({name: {"t": "y"}}).encode())


NAMES = st.sampled_from(["a", "b", 'a"', "ä"])
TEXTS = st.sampled_from(["x", "1", "1.0", "true", "null", "ä", "\\", ""])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 1), st.just(1.0), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


def told(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
    return None


@given(
    record=st.dictionaries(NAMES, VALUES, max_size=4),
    paths=st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True),
    values=st.frozensets(TEXTS, min_size=1),
    escapes=st.booleans(),
    broken=st.sampled_from([b"", b"x", b"\xff"]),
)
@example({"a": {"b": 1.0}}, [("a", "b")], frozenset({"1.0"}), False, b"")
def test_a_record_is_taken_or_not_as_a_plain_reading_says(
    record: dict[str, Any], paths: list[tuple[str, ...]], values: frozenset[str], escapes: bool, broken: bytes
) -> None:
    filters = [
        Filter(path, values) for path in paths if not any(path[: len(o)] == o for o in paths if len(o) < len(path))
    ]

    def has(path: tuple[str, ...]) -> bool:
        value: Any = record
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return told(value) in values

    data = json.dumps(record, ensure_ascii=escapes).encode() + broken
    assert taker(filters)(data) is (bool(broken) or all(has(one.steps) for one in filters))


def test_batches_have_what_is_taken_with_all_that_belongs_to_it() -> None:
    batch = raw(b'{"t":"a"}', b'{"t":"b"}', b'{"t":"a"}')
    (found,) = taken([batch], at("t", "a"))
    assert found.schema == SCHEMA
    assert found.column("sequence_number").to_pylist() == ["0", "2"]


def test_what_has_a_reason_stays() -> None:
    """Marks of what was not read, and rows that no sink took: they are no records of the stream."""
    marks = raw(b'{"t":"b"}').append_column(REASON, pa.array(["file not read: it is gone"]))
    assert [*taken([marks], at("t", "a"))] == [marks]


def test_what_has_a_reason_is_not_looked_at() -> None:
    marks = raw(b"").append_column(REASON, pa.array(["file not read: it is gone"]))
    marks = marks.set_column(0, marks.schema.field(0).with_nullable(True), pa.nulls(1, pa.binary()))
    assert [*taken([marks], at("t", "a"))] == [marks]


def test_a_record_that_has_a_reason_stays_beside_those_that_are_taken() -> None:
    some = raw(b'{"t":"b"}', b"", b'{"t":"a"}').append_column(REASON, pa.array([None, "no frame", None]))
    (found,) = taken([some], at("t", "a"))
    assert found.column("sequence_number").to_pylist() == ["1", "2"]


def test_compressed_records_are_taken_by_their_texts() -> None:
    datas = [gzip.compress(b'{"t":"a"}'), gzip.compress(b'{"t":"b"}'), b'{"t":"a"}', gzip.compress(b"{}")[:-1]]
    (found,) = taken(expanded([raw(*datas)]), at("t", "a"))
    assert found.column("data").to_pylist() == [datas[0], *datas[2:]]
    assert texts(found) == [b'{"t":"a"}', b'{"t":"a"}', datas[3]]


def test_without_filters_all_is_as_it_is() -> None:
    batch = raw(b"{}")
    (found,) = taken([batch], ())
    assert found is batch
