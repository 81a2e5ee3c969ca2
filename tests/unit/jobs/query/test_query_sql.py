"""SQL over one table, and what it may not do."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Event, Timer, get_ident, main_thread

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakestream.query import sql as sql_module
from lakestream.query.errors import SqlError, UnreadableError
from lakestream.query.sql import answered, connected, do, fill

LAKE = pa.table({"a": [1, 2], "b": ["x", "y"], "Odd name": [1.5, None]})
MD5 = str(int.from_bytes(hashlib.md5(b"b", usedforsecurity=False).digest(), "little"))
"""A number of 128 bits, the highest of which is 1."""
ALIKE = pa.table({"a": [1, 1, 1], "b": ["x", "y", None]})
"""Rows that the first column alone does not tell apart."""


class Reading:
    """Hands out the table once, as a stream of files does, and keeps what was asked for."""

    columns: list[str]

    def __init__(self, table: pa.Table = LAKE) -> None:
        self.table = table

    def __call__(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        self.columns = list(columns)
        return self.table.select(self.columns or ["a"]).to_reader()


def rows_of(sql: str, table: pa.Table = LAKE) -> list[tuple[object, ...]]:
    with answered(sql, table.schema, Reading(table)) as rows:
        return [tuple(row.values()) for row in rows.read_all().to_pylist()]


def rows_of_all(sql: str, table: pa.Table) -> list[tuple[object, ...]] | None:
    """What DuckDB answers that has the whole table; None if it refuses."""
    with connected() as connection:
        fill(connection, "lake", table.to_reader())
        try:
            return do(connection, sql)
        except duckdb.Error:
            return None


def test_the_folder_for_temporary_files_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert rows_of("SELECT count(*) FROM lake") == [(2,)]


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


def test_intervals_are_text_wherever_they_are() -> None:
    inner = """{'interval': 1, 'a "INTERVAL" b': INTERVAL 2 SECOND, 'e': 'INTERVAL'::ENUM('INTERVAL', 'it''s')}"""
    sql = f'SELECT INTERVAL \'1 day 3 hours\' AS "a ""b", [INTERVAL 1 MONTH, NULL] AS c, {inner} AS d FROM lake LIMIT 1'
    within = {"interval": 1, 'a "INTERVAL" b': "00:00:02", "e": "INTERVAL"}
    assert rows_of(sql) == [("1 day 03:00:00", ["1 month", None], within)]


def test_what_arrow_would_tell_as_something_else_is_text() -> None:
    numbers = "md5_number('b') AS a, [md5_number('b')] AS b, {'UHUGEINT': 1, 'b': 1::UHUGEINT} AS c, 12::BIGNUM AS d"
    others = "'12:00:01+02'::TIMETZ AS e, MAP {'101'::BIT: 1} AS f, TIMESTAMPTZ '2026-01-01' IS NULL AS g"
    ((a, b, c, *more),) = rows_of(f"SELECT {numbers}, {others} FROM lake LIMIT 1")
    assert (a, b, c) == (MD5, [MD5], {"UHUGEINT": 1, "b": "1"})
    assert more == ["12", "12:00:01+02", [("101", 1)], False]


@pytest.mark.parametrize(
    "sql",
    [
        # A row as one value.
        "SELECT count(DISTINCT lake) FROM lake",
        "SELECT max(lake) FROM lake",
        "SELECT to_json(t) FROM lake t",
        "SELECT DISTINCT T FROM lake t",
        "SELECT temp.main.lake FROM lake",
        "SELECT count(*) FROM lake GROUP BY lake",
        "SELECT a FROM lake WHERE lake = (SELECT max(l) FROM lake l)",
        "SELECT count(*) FROM (SELECT unnest(l) FROM lake l) GROUP BY ALL",
        "SELECT i.b FROM (SELECT max(lake) AS i FROM lake)",
        "WITH lake AS (SELECT 1 AS a, lake FROM lake) SELECT count(DISTINCT lake) FROM lake",
        # By their places.
        "SELECT #2 FROM lake",
        "SELECT t.y FROM lake t(x, y)",
        "SELECT count(DISTINCT y) FROM lake t(x, y)",
        # By all columns that are not named.
        'SELECT "1" FROM lake PIVOT (count(*) FOR a IN (1))',
        "PIVOT lake ON a IN (1, 2) USING count(*)",
        "SELECT count(*) FROM lake PIVOT (count(*) FOR a IN (1))",
        "SELECT v FROM lake UNPIVOT INCLUDE NULLS (v FOR n IN (b))",
        "UNPIVOT (SELECT a, b FROM lake) ON COLUMNS(*)::text INTO NAME n VALUE v",
        # By a pattern, or as what a star leaves.
        "SELECT COLUMNS('b') FROM lake",
        "SELECT COLUMNS(lambda name: name <> 'a') FROM lake",
        "SELECT COALESCE(*COLUMNS('b')) FROM lake",
        "SELECT * LIKE 'b' FROM lake",
        "SELECT count(DISTINCT s) FROM (SELECT * EXCLUDE (a) FROM lake) s",
        "SELECT * REPLACE (2 AS a) FROM lake",
        "SELECT * RENAME (a AS c) FROM lake",
        # In a text, or from the catalog.
        "SELECT count(*) FROM query('SELECT DISTINCT b FROM lake')",
        "SELECT count(DISTINCT t) FROM query_table('lake') t",
        "SELECT count(*) FROM (DESCRIBE lake)",
        "SELECT count(*) FROM pragma_table_info('lake')",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'lake'",
    ],
)
def test_a_query_that_means_columns_without_naming_them_has_all_of_them(sql: str) -> None:
    rows = rows_of_all(sql, ALIKE)
    assert rows is not None
    assert sorted(rows_of(sql, ALIKE), key=repr) == sorted(rows, key=repr)


@settings(max_examples=settings().max_examples // 4)
@given(
    st.sampled_from(
        ("t", "lake", "a", "x", "n", "t.a", "t.x", "#1", "#2", "COLUMNS('^[bn]')", "t.* EXCLUDE (a)", "b.b")
    ),
    st.sampled_from(("{}", "DISTINCT {}", "count({})", "count(DISTINCT {})", "to_json({})", "max({}) AS x")),
    st.sampled_from(
        (
            "lake",
            "lake t",
            "lake AS b",
            "lake t(x)",
            "lake t(b, a)",
            "lake PIVOT (count(*) AS n FOR a IN (1 AS x)) t",
            "lake UNPIVOT (x FOR n IN (b)) t",
            "(SELECT lake AS x FROM lake) t",
            "(SELECT a, count(*) AS n FROM lake GROUP BY a) t",
            "lake t JOIN lake b USING (b)",
            "lake t NATURAL JOIN lake b",
            "query('FROM lake') t",
        )
    ),
)
def test_an_answer_is_that_of_the_whole_table(value: str, form: str, source: str) -> None:
    sql = f"SELECT {form.format(value)} FROM {source}"
    rows = rows_of_all(sql, ALIKE)
    if rows is None:
        with pytest.raises(SqlError):
            rows_of(sql, ALIKE)
    else:
        assert sorted(rows_of(sql, ALIKE), key=repr) == sorted(rows, key=repr)


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT b FROM lake WHERE a > 1", ["a", "b"]),
        ('SELECT sum("odd name") FROM lake', ["Odd name"]),
        ("SELECT * FROM lake", ["a", "b", "Odd name"]),
        ("SELECT count(*) FROM lake", []),
        ("SELECT b, count(*) AS n FROM lake t GROUP BY t.b ORDER BY n", ["b"]),
        ("WITH r AS (SELECT b AS n FROM lake) SELECT r.n, i FROM r, unnest([1, 2]) u(i)", ["b"]),
        ("SELECT list_transform([b], lambda n: upper(n)) FROM lake", ["b"]),
        ("SELECT lake FROM lake", ["a", "b", "Odd name"]),
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
        ("SELECT '\udcff'", "--sql is not UTF-8"),
        ("DROP TABLE lake", r"takes a query \(SELECT"),
        ("PIVOT lake ON a USING count(*)", r"PIVOT needs its values .* ON … IN \(…\)"),
        ("WITH p AS (PIVOT lake ON b IN (SELECT b FROM lake)) FROM p", "PIVOT needs its values"),
        ("SELECT 'pivot'; DROP TABLE lake", r"takes a query \(SELECT"),
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


@pytest.fixture
def terminal() -> Iterator[None]:
    """Ctrl-C interrupts: of a process that a script has started in the background it does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# The first is one task of DuckDB's, minutes long; the second many.
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(100_000_000_000) t(i) WHERE hash(i) % 7 = 3",
        f"SELECT count(*) FROM {', '.join(f'range(100) t{number}' for number in range(8))}",
    ],
)
def test_ctrl_c_ends_a_query(sql: str) -> None:
    with connected() as connection:
        interrupt = Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

        def interrupted() -> None:
            interrupt.start()
            do(connection, sql)

        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert time.monotonic() - began < 60


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_ends_a_query_that_has_just_been_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_module, "SECONDS_TO_LOOK", 0.01)  # each of many rounds waits for a look

    class Slow:
        """A connection that works until it is interrupted, and whose user presses Ctrl-C as soon as it does."""

        def __init__(self) -> None:
            self.interrupted = Event()

        def execute(self, _statement: str, _values: Sequence[str]) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            assert self.interrupted.wait(5)
            raise duckdb.InterruptException("interrupted")

        def interrupt(self) -> None:
            self.interrupted.set()

    for _ in range(100):
        slow = Slow()
        with pytest.raises(KeyboardInterrupt):
            do(slow, "SELECT 1")  # type: ignore[arg-type]
        assert slow.interrupted.is_set()


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_ends_a_query_wherever_the_program_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a handler raises in a callback of the garbage collector is told to nobody."""

    class Collected:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1_000):
                pass  # here Python carries the handler out

    def wait_and_collect(futures: Sequence[Future[object]], timeout: float) -> object:
        monkeypatch.setattr(sql_module, "wait", wait)
        Collected()
        return wait(futures, timeout)

    with connected() as connection:
        monkeypatch.setattr(sql_module, "wait", wait_and_collect)
        with pytest.raises(KeyboardInterrupt):
            do(connection, "SELECT 1")


def is_waiting() -> bool:
    """Whether the main thread waits, and not for the start of a thread."""
    stack = traceback.extract_stack(sys._current_frames()[main_thread().ident or 0])
    names = [frame.name for frame in stack[-3:]]
    return names[-1] == "wait" and "start" not in names


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_that_another_thread_is_given_ends_a_query_too() -> None:
    """As the kernel gives it to one where the main thread has just been stopped and goes on."""

    class Slow:
        """A connection that works until it is interrupted."""

        def __init__(self) -> None:
            self.interrupted = Event()

        def execute(self, _statement: str, _values: Sequence[str]) -> None:
            while not is_waiting():
                pass  # it comes to that in a moment
            signal.pthread_kill(get_ident(), signal.SIGINT)
            assert self.interrupted.wait(60)
            raise duckdb.InterruptException("interrupted")

        def interrupt(self) -> None:
            self.interrupted.set()

    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        do(slow, "SELECT 1")  # type: ignore[arg-type]
    assert slow.interrupted.is_set()
