"""SQL over one table, and what it may not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from lakestream.query.errors import SqlError, UnreadableError
from lakestream.query.sql import answered, connected, do, fill

LAKE = pa.table({"a": [1, 2], "b": ["x", "y"], "Odd name": [1.5, None]})


class Reading:
    """Hands out the table once, as a stream of files does, and keeps what was asked for."""

    columns: list[str]

    def __call__(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        self.columns = list(columns)
        return LAKE.select(self.columns).to_reader()


def rows_of(sql: str) -> list[tuple[object, ...]]:
    with answered(sql, LAKE.schema, Reading()) as rows:
        return [tuple(row.values()) for row in rows.read_all().to_pylist()]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM lake", [(2,)]),
        ("FROM lake", [(1, "x", 1.5), (2, "y", None)]),
        ('SELECT A, l."odd NAME" FROM lake l ORDER BY a DESC', [(2, None), (1, 1.5)]),
        # The table is gone through twice.
        ("WITH r AS (SELECT a FROM lake) SELECT count(*) FROM r, r s", [(4,)]),
        ("SELECT x.b FROM lake x WHERE EXISTS (SELECT 1 FROM lake y WHERE y.a = x.a + 1)", [("x",)]),
        ("SELECT a FROM lake NATURAL JOIN lake y WHERE b = 'x'", [(1,)]),
        ("SELECT COLUMNS('^[ab]$') FROM lake LIMIT 1", [(1, "x")]),
        ("SELECT 1 -- nothing of it", [(1,)]),
    ],
)
def test_queries(sql: str, rows: list[tuple[object, ...]]) -> None:
    assert rows_of(sql) == rows


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT b FROM lake WHERE a > 1", ["a", "b"]),
        ('SELECT sum("odd name") FROM lake', ["Odd name"]),
        ("SELECT * FROM lake", ["a", "b", "Odd name"]),
        ("SELECT count(*) FROM lake", ["a"]),
    ],
)
def test_only_columns_that_are_named_are_read(sql: str, read: list[str]) -> None:
    reading = Reading()
    with answered(sql, LAKE.schema, reading) as rows:
        rows.read_all()
    assert reading.columns == read


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT c FROM lake", r'column "c" not found.* The columns of lake: a, b, Odd name$'),
        ("SELECT lake.c FROM lake", r'does not have a column named "c"\. The columns of lake: a, b, Odd name$'),
        ("SELECT a FROM orders", "name orders does not exist. The table is called lake there$"),
        ("SELECT foo(a) FROM lake", "(?s)name foo does not exist.*Did you mean"),
        ("SELEC 1", 'syntax error at or near "SELEC", in: SELEC 1$'),
        ("SELECT 1; SELECT 2", "takes one query, and there are 2$"),
        ("", "takes one query, and there are 0$"),
        ("DROP TABLE lake", r"takes a query \(SELECT"),
        ("COPY lake TO 'x.csv'", r"takes a query \(SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM lake, 'other.parquet'", "."),
        ("SELECT CAST(b AS int) FROM lake", "Could not convert string 'x'"),
    ],
)
def test_what_is_no_query_of_the_table_is_told(sql: str, says: str) -> None:
    with pytest.raises(SqlError, match=says) as error:
        rows_of(sql)
    assert str(error.value).startswith("--sql")


def test_what_reading_fails_with_is_told_as_it_is() -> None:
    def broken(columns: Sequence[str]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from LAKE.select(list(columns)).to_batches()
            raise UnreadableError("the second file")

        return pa.RecordBatchReader.from_batches(LAKE.select(list(columns)).schema, batches())

    with pytest.raises(UnreadableError, match=r"^the second file$"), answered("FROM lake", LAKE.schema, broken):
        pass


def test_rows_for_which_there_is_no_room_are_told_with_what_to_do() -> None:
    rows = pa.table({"a": [f"{number:0100}" for number in range(50_000)]})
    with connected() as connection:
        do(connection, "SET memory_limit = '1MB'")
        do(connection, "SET max_temp_directory_size = '1MB'")
        with pytest.raises(UnreadableError, match=r"cannot keep the rows .* Set TMPDIR to a folder with more room"):
            fill(connection, "lake", rows.to_reader(max_chunksize=1000))


def test_a_mistake_is_told_before_anything_is_read() -> None:
    reading = Reading()
    with pytest.raises(SqlError), answered("SELECT c FROM lake", LAKE.schema, reading):
        pass
    assert not hasattr(reading, "columns")
