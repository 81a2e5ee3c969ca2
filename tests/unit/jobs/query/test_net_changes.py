"""What differs between two versions of a table."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.query.images import AFTER, BEFORE, COMMIT_TIME, INSTANT, KEY, OP, PARTITION, ROW_KEY, SEQUENCE
from lakestream.query.net_changes import joined

OWN = pa.schema(
    [
        ("version", pa.int64()),
        ("amount", pa.float64()),
        ("cents", pa.decimal128(38, 18)),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ('a "name"', pa.struct([("raw", pa.binary())])),
    ]
)
ROW = (1, 0.5, Decimal("12345678901234567890.123456789012345678"), ["a", None], [("k", 1)], {"raw": b"\0\xff"})
NONE: tuple[Any, ...] = (None,) * 6

Version = Sequence[tuple[str, str, str, tuple[Any, ...]]]
"""Rows: key, partition, sequence, values."""


def changes(before: Version, after: Version) -> list[dict[str, Any]]:
    def reader(version: Version) -> Any:
        keys, partitions, sequences, values = ([row[n] for row in version] for n in range(4))
        hudi = {
            KEY: keys,
            PARTITION: partitions,
            SEQUENCE: sequences,
            COMMIT_TIME: [s.partition("_")[0] for s in sequences],
        }
        own = {field.name: pa.array([row[n] for row in values], field.type) for n, field in enumerate(OWN)}
        table = pa.table({**{name: pa.array(column, pa.string()) for name, column in hudi.items()}, **own})
        return lambda columns: table.select(columns).to_reader()

    with joined(reader(before), reader(after), OWN.names) as read:
        found: list[dict[str, Any]] = read([OP, INSTANT, ROW_KEY, BEFORE, AFTER]).read_all().to_pylist()
        assert read([]).read_all().num_rows == len(found), "as they are counted where no column is named"
        return found


def image(values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(OWN.names, values, strict=True))


def test_each_kind_of_change_has_the_row_as_it_was_and_as_it_is() -> None:
    before = [("a", "p", "1_0", ROW), ("b", "p", "1_1", ROW), ("c", "p", "1_2", ROW), ("d", "p", "1_3", NONE)]
    after = [("a", "p", "2_0", (2, *ROW[1:])), ("c", "p", "1_2", ROW), ("d", "p", "2_2", NONE), ("e", "p", "2_1", NONE)]
    assert changes(before, after) == [
        {OP: "update", INSTANT: "2", ROW_KEY: "a", BEFORE: image(ROW), AFTER: image((2, *ROW[1:]))},
        {OP: "delete", INSTANT: None, ROW_KEY: "b", BEFORE: image(ROW), AFTER: None},
        # A row of nulls is a row. That of `d` was written again as it was.
        {OP: "insert", INSTANT: "2", ROW_KEY: "e", BEFORE: None, AFTER: image(NONE)},
    ]


@pytest.mark.parametrize("column", range(6))
def test_any_column_makes_a_change(column: int) -> None:
    other = (2, float("nan"), Decimal("0.000000000000000001"), ["a"], [("k", 2)], {"raw": b"\0"})
    now = (*ROW[:column], other[column], *ROW[column + 1 :])
    (found,) = changes([("a", "p", "1_0", ROW)], [("a", "p", "2_0", now)])
    assert (found[OP], found[BEFORE]) == ("update", image(ROW))
    assert changes([("a", "p", "1_0", now)], [("a", "p", "2_0", now)]) == []


def test_of_a_table_of_inserts_rows_of_one_key_are_told_apart() -> None:
    before = [("a", "p", f"1_{n}", (n, *ROW[1:])) for n in range(3)]
    more = [("a", "p", f"2_{n}", (n, *ROW[1:])) for n in range(2)]
    found = changes(before, [*more, *before])
    assert [(one[OP], one[INSTANT], one[AFTER]["version"]) for one in found] == [("insert", "2", 0), ("insert", "2", 1)]


def test_one_key_in_two_partitions_is_two_rows() -> None:
    found = changes([("a", "p", "1_0", ROW)], [("a", "q", "2_0", ROW)])
    assert [one[OP] for one in found] == ["delete", "insert"]


states = st.dictionaries(st.text("abcdef", min_size=1, max_size=1), st.integers(0, 2))


@given(states, states)
def test_changes_make_the_one_version_of_the_other(before: dict[str, int], after: dict[str, int]) -> None:
    def rows(state: dict[str, int]) -> Version:
        return [(key, "p", f"{number}_0", (number, *NONE[1:])) for key, number in state.items()]

    state = dict(before)
    for one in changes(rows(before), rows(after)):
        assert (one[BEFORE] and one[BEFORE]["version"]) == state.pop(one[ROW_KEY], None)
        if one[AFTER] is not None:
            state[one[ROW_KEY]] = one[AFTER]["version"]
    assert state == after
