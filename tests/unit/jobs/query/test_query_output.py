"""Rows on the way out."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from lakestream.query.errors import SqlError
from lakestream.query.form import Format
from lakestream.query.output import write_rows

ROWS = pa.table(
    {
        "id": ["a", "", None],
        "n": [1, -20, None],
        "cents": pa.array([Decimal("1.10"), Decimal("-0.05"), None], pa.decimal128(20, 2)),
        "at": pa.array([datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC), None, None], pa.timestamp("us", tz="UTC")),
        "day": [date(2026, 1, 31), None, None],
        "on": [True, False, None],
        "raw": [b"\0\xff", b"", None],
        "tags": [["x", None], [], None],
        "part": [{"x": 1, "y": {"z": Decimal("2.50")}}, None, None],
        "note": ['say "hi", twice', "two\nlines", "z" * 80],
    }
)
UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])


def written(form: Format, rows: pa.Table = ROWS) -> bytes:
    out = io.BytesIO()
    assert write_rows(rows.to_reader(max_chunksize=2), form, out) == rows.num_rows
    return out.getvalue()


@pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
def test_other_engines_read_back_the_same_rows(form: Format) -> None:
    source = io.BytesIO(written(form))
    assert (pq.read_table(source) if form is Format.PARQUET else pa.ipc.open_stream(source).read_all()).equals(ROWS)


def test_lines_of_json_have_all_digits() -> None:
    first, second, third = written(Format.JSONL).splitlines()
    assert b'"cents":1.10,' in first
    assert orjson.loads(first) == {
        "id": "a",
        "n": 1,
        "cents": 1.1,
        "at": "2026-01-31T12:00:00.000005Z",
        "day": "2026-01-31",
        "on": True,
        "raw": "AP8=",
        "tags": ["x", None],
        "part": {"x": 1, "y": {"z": 2.5}},
        "note": 'say "hi", twice',
    }
    assert orjson.loads(second)["id"] == ""
    assert {value for name, value in orjson.loads(third).items() if name != "note"} == {None}


def test_floats_have_the_digits_that_they_were_written_with() -> None:
    """Not those of the double that each is to Python: 1.100000023841858."""
    kind = pa.float32()
    within: Any = [{"x": 1.1, "y": [1.1, None], "z": [("k", 1.1)]}, None]
    of = pa.struct([("x", kind), ("y", pa.list_(kind)), ("z", pa.map_(pa.string(), kind))])
    rows = pa.table(
        {
            "f": pa.array([1.1, 16777216], kind),
            "in": pa.array(within, of),
            "key": pa.array([[(1.1, 2)], []], pa.map_(kind, pa.int8())),
        }
    )
    assert [orjson.loads(line) for line in written(Format.JSONL, rows).splitlines()] == [
        {"f": 1.1, "in": {"x": 1.1, "y": [1.1, None], "z": {"k": 1.1}}, "key": {"1.1": 2}},
        {"f": 16777216.0, "in": None, "key": {}},
    ]
    floats = pa.table({"f": pa.array([1.1, None, -3.4028235e38, float("inf"), float("nan")], kind)})
    assert written(Format.CSV, floats).decode().splitlines() == ["f", "1.1", '""', "-3.4028235e+38", "inf", "nan"]
    assert pq.read_table(io.BytesIO(written(Format.PARQUET, floats))).schema == floats.schema


def test_nanoseconds_are_written_too() -> None:
    times = pa.array([1_000_000_001], pa.timestamp("ns", tz="UTC"))
    every = [[1_000_000_001, None, 1_000]]
    deep = pa.map_(pa.string(), pa.struct([("at", times.type), ("time", pa.time64("ns"))]))
    part = pa.array([[("k", {"at": 1, "time": 2})]], deep)
    rows = pa.table({"at": times, "all": pa.array(every, pa.list_(times.type)), "deep": part})
    found = orjson.loads(written(Format.JSONL, rows))
    assert found["at"] == "1970-01-01T00:00:01.000000001+00:00"
    assert found["all"] == ["1970-01-01T00:00:01.000000001+00:00", None, "1970-01-01T00:00:00.000001Z"]
    assert found["deep"] == {"k": {"at": "1970-01-01T00:00:00.000000001+00:00", "time": "00:00:00.000000002"}}
    assert b"00:00:01.000000001" in written(Format.TABLE, rows)


def test_years_that_python_has_not_are_written() -> None:
    days = pa.array([3_000_000, None, 0], pa.int32()).cast(pa.date32())
    times = pa.array([253_402_300_800_000_005, -62_135_596_800_000_001, None], pa.int64()).cast(pa.timestamp("us"))
    found = [orjson.loads(line) for line in written(Format.JSONL, pa.table({"on": days, "at": times})).splitlines()]
    assert [row["on"] for row in found] == ["10183-09-21", None, "1970-01-01"]
    assert [row["at"] for row in found] == ["10000-01-01T00:00:00.000005", "0000-12-31T23:59:59.999999", None]


@pytest.mark.parametrize(
    ("kind", "most"),
    [(pa.date32(), 2**31 - 1), *((pa.timestamp(unit, "UTC"), 2**63 - 1) for unit in ("s", "ms", "us", "ns"))],
    ids=str,
)
def test_the_end_of_time_is_no_date(kind: pa.DataType, most: int) -> None:
    """As DuckDB has it, which would be a time of the year 294247."""
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    rows = pa.table(
        {
            "at": pa.array([most, -most], whole).cast(kind),
            "in": pa.array([[most], []], pa.list_(whole)).cast(pa.list_(kind)),
        }
    )
    assert written(Format.JSONL, rows).splitlines() == [
        b'{"at":"infinity","in":["infinity"]}',
        b'{"at":"-infinity","in":[]}',
    ]
    assert written(Format.CSV, rows.select(["at"])) == b"at\ninfinity\n-infinity\n"


def test_csv_tells_null_from_an_empty_text() -> None:
    text = written(Format.CSV).decode()
    assert text.splitlines()[0] == "id,n,cents,at,day,on,raw,tags,part,note"
    first, second, third = list(csv.reader(io.StringIO(text)))[1:]
    assert first == [
        *("a", "1", "1.10", "2026-01-31 12:00:00.000005+00:00", "2026-01-31", "true", "AP8=", '["x",null]'),
        *('{"x":1,"y":{"z":2.50}}', 'say "hi", twice'),
    ]
    assert second[-1] == "two\nlines"
    assert third[:2] == ["", ""]
    assert '\n"",-20,' in text
    assert "\n,,,,,,,,,zzz" in text


def test_csv_of_one_column_keeps_the_rows_of_null() -> None:
    text = written(Format.CSV, pa.table({"n": [None, 1, None]}))
    assert text == b'n\n""\n1\n""\n'
    assert [row["n"] for row in csv.DictReader(io.StringIO(text.decode()))] == ["", "1", ""]
    assert pyarrow.csv.read_csv(io.BytesIO(text)).num_rows == 3


def test_a_table_is_aligned_and_narrow_enough() -> None:
    lines = written(Format.TABLE, ROWS.select(["id", "n", "note"])).decode().splitlines()
    assert lines[0].split() == ["id", "n", "note"]
    assert lines[2] == 'a     1  say "hi", twice'
    assert lines[3] == "    -20  two lines"
    assert lines[4].endswith("z…")
    assert len(lines[4]) < 70


def test_a_terminal_is_sent_no_control_characters() -> None:
    rows = pa.table({"\x1b[1m": ["\x1b]0;title\x07", "\x00", "\u202etxt", "ü 😀\u00a0z"]})
    assert written(Format.TABLE, rows).decode().splitlines()[2:] == [
        "\\x1b]0;title\\x07",
        "\\x00",
        "\\u202etxt",
        "ü 😀 z",
    ]
    assert written(Format.TABLE, rows).decode().splitlines()[0] == "\\x1b[1m"


@pytest.mark.parametrize("rows", [pa.table({"x": pa.array([{}], pa.struct([]))}), pa.table({"x": UNION})])
def test_what_a_form_has_nothing_for_is_told(rows: pa.Table) -> None:
    out = io.BytesIO()
    with pytest.raises(SqlError, match=r"-o parquet: .*\. Cast the column in --sql, or have another form"):
        write_rows(rows.to_reader(), Format.PARQUET, out)
    assert out.getvalue() == b""
    assert written(Format.JSONL, rows)


@pytest.mark.parametrize("form", list(Format))
def test_no_rows_are_an_answer_too(form: Format) -> None:
    content: Any = written(form, ROWS.slice(0, 0))
    assert (content == b"") == (form is Format.JSONL)


@pytest.mark.parametrize("form", [Format.JSONL, Format.CSV])
@pytest.mark.parametrize(
    ("kind", "key", "told"),
    [
        (pa.decimal128(5, 2), Decimal("1.10"), "1.10"),
        (pa.bool_(), True, "true"),
        (pa.list_(pa.int64()), [1, 2], "[1,2]"),
        (pa.struct([("x", pa.int64())]), {"x": 1}, '{"x":1}'),
        (pa.int64(), 7, "7"),
        (pa.date32(), date(2026, 1, 31), "2026-01-31"),
    ],
)
def test_keys_of_maps_are_texts_as_json_has_them(form: Format, kind: pa.DataType, key: object, told: str) -> None:
    # As DuckDB's `histogram` makes them.
    deep = pa.struct([("of", pa.map_(kind, pa.int64()))])
    rows = pa.table({"h": pa.array([{"of": [(key, 3)]}, None], deep)})
    said = written(form, rows).decode()
    text = said.splitlines()[0] if form is Format.JSONL else next(csv.DictReader(io.StringIO(said)))["h"]
    found = orjson.loads(text)
    assert (found["h"] if form is Format.JSONL else found) == {"of": {told: 3}}


def test_columns_of_a_table_stand_below_each_other_whatever_the_script() -> None:
    """A terminal gives two columns to each of these, none to an accent of its own, and one to all others."""
    rows = pa.table({"名前": ["誕生日", "ÅÅ", "A\u030a", "🎂"], "n": [1, 20, 3, 4]})
    assert written(Format.TABLE, rows).decode().splitlines() == [
        "名前     n",
        "──────  ──",
        "誕生日   1",
        "ÅÅ      20",
        "A\u030a        3",
        "🎂       4",
    ]
