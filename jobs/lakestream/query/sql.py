"""SQL over the one table of a question, by DuckDB."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from lakestream.errors import LakeStreamError
from lakestream.query.ddl import quoted, text
from lakestream.query.errors import SqlError, UnreadableError
from lakestream.query.question import TABLE
from lakestream.query.waiting import SECONDS_TO_LOOK, begun, ctrl_c
from lakestream.texts import is_utf8

_ANSWER = "answer"
_ROWS = 10_000
"""Of a batch that is handed on."""
_OF_VALUES = frozenset({"generate_series", "range", "unnest"})
"""Table functions that read nothing but their arguments."""
# Names of fields and values of enumerations are passed over: they are in quotes, or a type comes behind them.
_UNTOLD = re.compile(
    r'"(?:[^"]|"")*"'
    r"|'(?:[^']|'')*'|\b(?:BIGNUM|BIT|INTERVAL|TIME WITH TIME ZONE|UHUGEINT|VARIANT)(?=[,)\[]|$)"
)
"""Types that Arrow has no form for, or another one: of the larger half of UHUGEINT it would have negative numbers."""

ENGINE = f"DuckDB {duckdb.__version__}"

Read = Callable[[Sequence[str]], pa.RecordBatchReader]
"""Reads columns of the table; of none asked for, rows with any column that costs little, to be counted."""


@contextmanager
def answered(sql: str, schema: pa.Schema, read: Read) -> Iterator[pa.RecordBatchReader]:
    """The answer to a query, all of it: what fails at a row has left no half of it behind.

    The table is brought into DuckDB first, as far as its columns are needed (it goes to disk where memory ends): a
    query may go through it several times, a stream of batches only once.

    Args:
        sql: one query over the table `lake`.
        schema: that the table has.
        read: brings columns of it.

    Raises:
        SqlError: no query; or it names a table, column or function that is not there. Before anything is read.
    """
    with connected() as connection:
        # Whoever hands a query to us does not thereby hand out what else this process may read or write.
        do(connection, "SET enable_external_access = false")
        do(connection, "SET lock_configuration = true")
        needed = columns_of(connection, sql, schema.names)
        with _in_our_words(schema.names):
            fill(connection, TABLE, pa.RecordBatchReader.from_batches(schema, []))
            do(connection, f"EXPLAIN {sql}")
        fill(connection, TABLE, read(needed))
        with _in_our_words(schema.names):
            do(connection, f"CREATE TEMP TABLE {_ANSWER} AS {sql}")
        yield _told(connection.table(_ANSWER)).to_arrow_reader(_ROWS)


def _told(answer: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Intervals as text, as of `1 day 03:00:00`: Parquet has none of Arrow's, and nobody reads months, days and
    nanoseconds. Likewise what Arrow does not have as it is."""
    columns = []
    for name, kind in zip(answer.columns, map(str, answer.types), strict=True):
        told = _UNTOLD.sub(lambda found: found[0] if found[0][0] in "\"'" else "VARCHAR", kind)
        columns.append(quoted(name) if told == kind else f"CAST({quoted(name)} AS {told}) AS {quoted(name)}")
    return answer.project(", ".join(columns))


@contextmanager
def kept(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatchReader]:
    """Rows, once all of them were read.

    Raises:
        LakeStreamError: as `fill`.
    """
    with connected() as connection:
        fill(connection, _ANSWER, rows)
        yield connection.table(_ANSWER).to_arrow_reader(_ROWS)


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of its own, which goes to disk where memory ends."""
    with tempfile.TemporaryDirectory(prefix="lakestream-query-") as spill, duckdb.connect(":memory:") as connection:
        do(connection, "SET TimeZone = 'UTC'")
        do(connection, f"SET temp_directory = {text(spill)}")
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.RecordBatchReader) -> None:
    """Bring rows into a table, in place of what it had.

    Raises:
        LakeStreamError: what reading the rows failed with.
        UnreadableError: there is no room for them.
    """
    failed: list[LakeStreamError] = []
    connection.register("read_once", pa.RecordBatchReader.from_batches(rows.schema, _keeping(failed, rows)))
    try:
        do(connection, f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM read_once")
    except duckdb.Error as error:
        if failed:
            raise failed[0] from failed[0].__cause__
        said = _first_line(str(error))
        raise UnreadableError(
            f"{ENGINE} cannot keep the rows that a query needs: {said} Set TMPDIR to a folder with more room, or name "
            "fewer columns in --sql"
        ) from error
    connection.unregister("read_once")


def _keeping(failed: list[LakeStreamError], rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches; what a reader fails with is kept, since DuckDB tells it as an error of its own."""
    try:
        yield from rows
    except LakeStreamError as error:
        failed.append(error)
        raise


def do(connection: duckdb.DuckDBPyConnection, statement: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """Carry out a statement; its rows."""
    # DuckDB looks for Ctrl-C between its own tasks alone, each of which may take minutes, and makes an error of it.
    with ctrl_c() as is_pressed:
        # A connection takes the next statement only when all of an answer was fetched.
        found = begun(lambda: connection.execute(statement, list(values)).fetchall())
        # Now and then: where another thread was given the signal, this one is not woken by it.
        while not wait([found], SECONDS_TO_LOOK).done:
            if is_pressed():
                connection.interrupt()  # again and again: what has not begun yet is not stopped by it
        if is_pressed():
            raise KeyboardInterrupt
    return found.result()


@contextmanager
def _in_our_words(columns: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        message = str(error).split("\n\n")[0].strip().removeprefix("Failure in ")
        if "Table with name" in message:
            raise SqlError(f"--sql: {_first_line(message)} The table is called {TABLE} there") from error
        if "not found in FROM clause" in message or "does not have a column" in message:
            raise SqlError(f"--sql: {_first_line(message)} The columns of {TABLE}: {', '.join(columns)}") from error
        raise SqlError(f"--sql: {message}") from error


def _first_line(message: str) -> str:
    line = message.splitlines()[0].rstrip("!.")
    return f"{line}."


def columns_of(connection: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Which of a table's columns a query may need.

    A column that is needed is named somewhere in the query, or something there may mean columns without their names.
    All that has the name of a column counts, whatever it is: one column too many costs a little, and none is missing.

    Raises:
        SqlError: not one query.
    """
    if not is_utf8(sql):
        raise SqlError(f"--sql is not UTF-8: {sql!r}")
    ((text,),) = do(connection, "SELECT json_serialize_sql(?)", [sql])
    tree = json.loads(text)
    if tree["error"]:
        if tree["error_type"] == "not implemented":
            if any(one.type is duckdb.StatementType.MULTI for one in connection.extract_statements(sql)):
                # DuckDB makes two statements of it, the first of which would look the values up.
                raise SqlError(
                    "--sql: PIVOT needs its values here: PIVOT lake ON … IN (…), with each value in the list"
                )
            raise SqlError("--sql takes a query (SELECT, WITH, FROM, VALUES), and no other statement")
        raise SqlError(f"--sql: {tree['error_message']}, in: {sql}")
    if len(tree["statements"]) != 1:
        raise SqlError(f"--sql takes one query, and there are {len(tree['statements'])}")
    nodes, words = _parts_of(tree["statements"][0])
    if _mean_all(nodes):
        return tuple(columns)
    return tuple(name for name in columns if name.lower() in words)


def _parts_of(tree: Any) -> tuple[list[dict[str, Any]], set[str]]:
    """All nodes of a tree, and all texts in it, in lower case."""
    nodes: list[dict[str, Any]] = []
    words: set[str] = set()
    left = [tree]
    while left:
        match left.pop():
            case dict() as node:
                nodes.append(node)
                left += [*node.keys(), *node.values()]
            case list() as children:
                left += children
            case str() as text:
                words.add(text.lower())
    return nodes, words


def _mean_all(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether columns may be meant without being named."""
    known = {TABLE}
    rows: set[str] = set()
    for node in nodes:
        match node:
            case {"cte_map": {"map": tables}}:
                known |= {table["key"].lower() for table in tables}
            case {"type": "BASE_TABLE", "alias": alias, "table_name": name}:
                rows.add((alias or name).lower())
    return any(_means_all(node, known, rows) for node in nodes)


def _means_all(node: Mapping[str, Any], known: Set[str], rows: Set[str]) -> bool:
    """Whether columns may be meant by one node.

    Args:
        node: of a query.
        known: names of the table, and of what the query itself defines.
        rows: names that stand for a whole row.
    """
    match node:
        case {"class": "STAR" | "POSITIONAL_REFERENCE"} | {"ref_type": "NATURAL"}:
            return True
        case {"type": "PIVOT"}:  # it groups by all columns that it does not name
            return True
        case {"type": "BASE_TABLE", "column_name_alias": [_, *_]}:  # they have other names, by their places
            return True
        case {"class": "COLUMN_REF", "column_names": [*_, name]}:
            return name.lower() in rows
        case {"type": "BASE_TABLE", "table_name": name}:  # of the catalog, which tells the columns
            return name.lower() not in known
        case {"type": "TABLE_FUNCTION", "function": {"function_name": name}}:  # it may take a table's name, or SQL
            return name.lower() not in _OF_VALUES
    return False
