"""JSON files without Spark: DuckDB reads the lines.

Columns that the schema declares have their types, where these hold what is in the lines. What a transform adds is
declared nowhere: its types are inferred from all lines.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import obstore
import pyarrow as pa

from lakestream.errors import SettingsError
from lakestream.query import sql
from lakestream.query.ddl import quoted, text
from lakestream.query.errors import UnreadableError
from lakestream.query.json_log import BATCH, COMMITTED_AT, CommittedFile, JsonLog
from lakestream.query.json_types import (
    Numbers,
    as_read,
    exactly,
    has_mark,
    has_numbers,
    inferred,
    marked,
    may_be_rounded,
    plain_text,
    same_names,
    told_apart,
)
from lakestream.query.question import Asked
from lakestream.query.rows import first
from lakestream.query.spans import Span
from lakestream.query.telling import told_of
from lakestream.sinks.hive_paths import partition_values
from lakestream.storage import Scheme, StoreSettings, open_store, translated
from lakestream_api import rounded_size

logger = logging.getLogger(__name__)

_LONGEST_LINE = 1 << 26
"""Bytes. A record of Kinesis has 10 MiB; escapes and fields from others make its line longer."""
_CONCURRENT_GETS = 16
_LARGE = 1 << 30
"""Bytes that take long to fetch."""
_EXACT_DIGITS = 15
"""DuckDB reads a number with a fraction as a double, whatever it is to become; so many digits survive that."""

_INEXACT = (
    "has whole numbers with more digits than a double keeps, and others with fractions, for which "
    f"{sql.ENGINE} has nothing else: have Spark read what `lakestream files` lists"
)
_ROUNDED = (
    f"has fractions with more digits than a double keeps, which {sql.ENGINE} would round: have Spark read what "
    "`lakestream files` lists"
)
_ALIKE = "is {} in the lines, which are one to SQL: ask for batches that have one of them, by --at or --since"
_DECIMAL = re.compile(r"DECIMAL\((\d+),")
_LIKE, _AS_IT_IS = re.compile(r"[*?\[]"), r"[\g<0>]"
"""What DuckDB takes for a pattern in a path, unless it is in brackets."""
_FILE = "_lakestream_file"
# Of a path DuckDB would take all that looks like a partition for a column, above the table too.
_OPTIONS = f"format = 'newline_delimited', maximum_object_size = {_LONGEST_LINE}, hive_partitioning = false"


class JsonDuckDb:
    """The files of one table, as a question looks at them; a `Source`."""

    engine = sql.ENGINE

    def __init__(self, log: JsonLog, span: Span, asked: Asked) -> None:
        if not log.batches:
            raise SettingsError(f"no batch with rows is committed yet in {log.told} at {log.table.path}")
        _require_exact(log)
        self._log = log
        self._span = span
        self._asked = asked
        of_span = log.files(span)
        self._files = of_span
        # What infers types looks at all lines, and so does a query.
        if asked.sql is None and asked.limit is not None and log.is_complete:
            self._files = _with_rows(asked.limit, of_span)
        self._of = f" of {len(of_span):,}" if len(self._files) < len(of_span) else ""

    @property
    def about(self) -> str:
        files = f"{len(self._files):,}{self._of} files"
        return f"{self._log.told}, {told_of(self._span, self._asked.now, 'batch ')}, {files}"

    @contextmanager
    def answered(self, statement: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        """See `Source`."""
        # Of no line, the columns are those of the newest batch.
        files = self._files or self._log.newest_files
        with (
            _local(self._log.table, files) as paths,
            duckdb.connect(":memory:") as connection,
            _in_our_words(self._log, paths),
        ):
            lines = _Lines(connection, self._log, dict(zip(paths, files, strict=True)), empty=not self._files)
            if statement is not None:
                with sql.answered(statement, lines.schema, lines.read) as rows:
                    yield first(limit, rows)
                return
            own = [name for name in lines.schema.names if name not in lines.origins]
            with sql.kept(first(limit, lines.read(own))) as rows:
                yield rows

    def require_kept(self) -> None:
        """See `Source`: one that is gone is an error as it is read."""


class _Lines:
    """Lines of files, with the columns that the files' paths and the log add."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        log: JsonLog,
        files: Mapping[str, CommittedFile],
        *,
        empty: bool,
    ) -> None:
        self._connection = connection
        self._log = log
        self._paths = list(files)
        self._condition = "WHERE false" if empty else ""
        sql.do(connection, "SET TimeZone = 'UTC'")
        values = [partition_values(file.entry.partition) for file in files.values()]
        partitions = [*dict.fromkeys(name for one in values for name in one)]
        self._refused: dict[str, str] = {}
        """Columns that cannot be read, and why."""
        self._fractions: set[str] = set()
        """Inferred columns that may have numbers with fractions, in them or within their values."""
        self._declared = log.declared
        types = dict(self._declared)
        if not log.is_complete:
            types |= self._inferred({name.lower() for name in types})
        self._in_lines = {name: kind for name, kind in types.items() if name not in partitions}
        self._beside = {name: types.get(name, "VARCHAR") for name in partitions}
        self.origins = _origins(files.values(), {name.lower() for name in (*types, *partitions)})
        """Columns that the log adds."""
        of_paths = {name: pa.array([one.get(name) for one in values], pa.string()) for name in partitions}
        connection.register("origins", pa.table({_FILE: self._paths, **of_paths, **self.origins}))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the lines, then those of the paths, then those of the log."""
        names = [*self._in_lines, *self._beside, *self.origins]
        return self._select(names).limit(0).to_arrow_table().schema

    def read(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Columns of all lines; see `sql.Read`.

        Raises:
            UnreadableError: one of them has numbers that no type holds, or has several names.
        """
        if refused := next((name for name in columns if name in self._refused), None) or self._rounded(columns):
            why = self._refused.get(refused, _ROUNDED)
            raise UnreadableError(f"column {refused} of {self._log.told} {why}; or name other columns in --sql")
        rows = self._select(columns).to_arrow_reader(10_000)
        return pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows))

    def _batches(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # as Arrow tells one of DuckDB's
            raise _unreadable(self._log, self._paths, error) from error

    def _select(self, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        # Lines of which no column is asked for are counted still.
        read = [name for name in columns if name in self._in_lines] or [*self._in_lines][:1]
        picked = ", ".join(f"{self._value(name)} AS {quoted(name)}" for name in columns) or "true AS counted"
        lines = self._lines({name: self._read_as(name) for name in read})
        # Apart, since what follows says each of them several times.
        texts = ", ".join([_FILE, *(f"{self._text(name)} AS {quoted(name)}" for name in columns if name in read)])
        return self._connection.sql(
            f"SELECT {picked} FROM (SELECT {texts} FROM {lines}) AS lines "
            f"JOIN origins USING ({_FILE}) {self._condition}"
        )

    def _lines(self, types: Mapping[str, str]) -> str:
        columns = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in types.items())
        return f"read_json({_list(self._paths)}, columns = {{{columns}}}, {_OPTIONS}, filename = '{_FILE}')"

    def _read_as(self, name: str) -> str:
        kind = self._in_lines[name]
        return as_read(kind) if name in self._declared else kind

    def _text(self, name: str) -> str:
        """SQL of a column of the lines, none of which is JSON any more."""
        if name in self._declared:
            return told_apart(name, quoted(name), self._in_lines[name], _FILE)
        return plain_text(quoted(name)) if self._in_lines[name] == "JSON" else quoted(name)

    def _value(self, name: str) -> str:
        if name in self._in_lines:
            read, kind = f"lines.{quoted(name)}", self._in_lines[name]
            return exactly(name, read, kind, _FILE) if name in self._declared else read
        if name in self._beside:
            return exactly(name, f"origins.{quoted(name)}", self._beside[name], _FILE)
        return f"origins.{quoted(name)}"

    def _inferred(self, known: Set[str]) -> dict[str, str]:
        """Types by column that hold all lines, of columns that are not known, in lower case."""
        found, newest = self._structure(self._paths), self._structure(self._paths[-1:])
        # Of all lines the order is that in which threads were done.
        names = [*(name for name in newest if name in found), *sorted(found.keys() - newest.keys())]
        found = {name: found[name] for name in names if name.lower() not in known}
        for kept, *others in same_names(found):
            self._refused[kept] = _ALIKE.format(" and ".join([kept, *others]))
            found = {name: kind for name, kind in found.items() if name not in others}
        self._fractions = {name for name, kind in found.items() if may_be_rounded(kind)}
        numbers = self._numbers([name for name, kind in found.items() if has_numbers(kind)])
        types = {name: inferred(kind, numbers.get(name, Numbers())) for name, kind in found.items()}
        self._refused |= {name: _INEXACT for name, kind in types.items() if kind is None}
        return {name: kind or "DOUBLE" for name, kind in types.items()}

    def _structure(self, paths: Sequence[str]) -> dict[str, Any]:
        """Of the lines of some files, what `json_group_structure` says of each column."""
        ((said,),) = sql.do(self._connection, f"SELECT json_group_structure(json) FROM {_objects(paths)}")
        found = json.loads(said or "{}")
        return found if isinstance(found, dict) else {}

    def _numbers(self, names: Sequence[str]) -> dict[str, Numbers]:
        if not names:
            return {}
        looked_for = ", ".join(map(Numbers.looked_for, names))
        lines = self._lines(dict.fromkeys(names, "JSON"))
        (found,) = sql.do(self._connection, f"SELECT {looked_for} FROM {lines}")
        return {name: Numbers(*seen) for name, seen in zip(names, found, strict=True)}

    def _rounded(self, columns: Sequence[str]) -> str | None:
        """One of the columns whose fractions are doubles, as none is declared, with decimals that no double is."""
        doubles = [name for name in columns if name in self._fractions]
        if not doubles:
            return None
        looked_for = ", ".join(f"bool_or({has_mark(name)})" for name in doubles)
        (found,) = sql.do(self._connection, f"SELECT {looked_for} FROM ({marked(_objects(self._paths))})")
        return next((name for name, is_long in zip(doubles, found, strict=True) if is_long), None)


def _objects(paths: Sequence[str]) -> str:
    return f"read_json_objects({_list(paths)}, {_OPTIONS})"


def _list(paths: Sequence[str]) -> str:
    return f"[{', '.join(text(_LIKE.sub(_AS_IT_IS, path)) for path in paths)}]"


def _origins(files: Iterable[CommittedFile], taken: Set[str]) -> dict[str, pa.Array]:
    """Of each file its batch, and from when on that counts; but for columns whose names the table itself has."""
    known = list(files)
    origins = {
        BATCH: pa.array([file.batch for file in known], pa.int64()),
        COMMITTED_AT: pa.array([file.at for file in known], pa.timestamp("us", tz="UTC")),
    }
    return {name: values for name, values in origins.items() if name not in taken}


def _require_exact(log: JsonLog) -> None:
    for name, kind in log.declared.items():
        if any(int(digits) > _EXACT_DIGITS for digits in _DECIMAL.findall(kind)):
            raise UnreadableError(
                f"column {name} of {log.told} has decimals of more than {_EXACT_DIGITS} digits, which {sql.ENGINE} "
                "reads from JSON as doubles; have Spark read what `lakestream files` lists"
            )


@contextmanager
def _in_our_words(log: JsonLog, paths: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise _unreadable(log, paths, error) from error


def _unreadable(log: JsonLog, paths: Sequence[str], error: Exception) -> UnreadableError:
    message = str(error).splitlines()[0]
    if gone := [path for path in paths if not Path(path).exists()]:
        message = f"{gone[0]} is gone, which a committed batch has written. Bring it back, or ask for later batches"
    for path in paths:
        # One of S3 is in a temporary folder.
        below = path.removeprefix(f"{log.table.path}/")
        message = message.replace(path, path.rpartition("/")[2] if below == path else below)
    return UnreadableError(f"{sql.ENGINE} cannot read {log.told} at {log.table.path}: {message}")


def _with_rows(limit: int, files: Sequence[CommittedFile]) -> tuple[CommittedFile, ...]:
    """The first files that have so many rows together, and one at least, for the columns."""
    rows_before = accumulate((file.entry.rows for file in files), initial=0)
    return tuple(file for file, before in zip(files, rows_before, strict=False) if before < max(limit, 1))


def _require_room(place: StoreSettings, files: Sequence[CommittedFile], folder: str) -> None:
    """Tell of what takes long to fetch, before it is, and refuse what has no room."""
    size = sum(file.entry.bytes for file in files)
    free = shutil.disk_usage(folder).free
    told = f"{len(files):,} files of {place.path} with {rounded_size(size)} are to be fetched first"
    instead = "--since and --at ask for less, or have Spark read what `lakestream files` lists"
    if size > free:
        raise UnreadableError(f"{told}, and {folder} has {rounded_size(free)} left: {instead}. TMPDIR names another")
    if size > _LARGE:
        logger.warning("%s; %s", told, instead)


@contextmanager
def _local(place: StoreSettings, files: Sequence[CommittedFile]) -> Iterator[list[str]]:
    """Paths on this machine of files of a table; those on S3 are fetched, and removed in the end."""
    if place.path.scheme is Scheme.FOLDER:
        yield [f"{place.path}/{file.entry.path}" for file in files]
        return
    store = open_store(place)
    with tempfile.TemporaryDirectory(prefix="lakestream-query-") as folder:
        _require_room(place, files, folder)

        def fetch(numbered: tuple[int, CommittedFile]) -> str:
            number, file = numbered
            # Its ending tells how it is compressed.
            path = Path(folder, f"{number}-{file.entry.path.rpartition('/')[2]}")
            with translated(f"read {file.entry.path} under {place.path}"):
                path.write_bytes(obstore.get(store, file.entry.path).bytes())
            return str(path)

        with ThreadPoolExecutor(_CONCURRENT_GETS) as pool:
            yield list(pool.map(fetch, enumerate(files)))
