"""Hudi tables without Spark: hudi-rs finds and merges the files, Arrow carries the rows.

Which instant is read, and whether its files are still there, was decided before (`spans`): hudi-rs does not ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from textwrap import shorten
from urllib.parse import quote

import hudi
import pyarrow as pa
import pyarrow.compute as pc

from lakestream.errors import LakeStreamError
from lakestream.query import sql
from lakestream.query.errors import UnreadableError
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.images import COMMIT_TIME
from lakestream.query.question import Asked, ReadOptimized
from lakestream.query.rows import first
from lakestream.query.spans import Span
from lakestream.query.telling import instant_of_log, staleness, told_of
from lakestream.query.waiting import Given, awaited
from lakestream.storage import Scheme, StoreSettings, failure_of_s3

ENGINE = f"hudi-rs {hudi.__version__}"

_LOCAL_TIME = '"logicalType": "local-timestamp-'
"""Of Avro's types; also within others."""
_READ_OPTIMIZED = "hoodie.read.use.read_optimized.mode"


class HudiRs:
    """One table, as a question looks at it; a `Source`."""

    engine = f"{ENGINE} and {sql.ENGINE}"

    def __init__(self, folder: HudiFolder, span: Span, asked: Asked) -> None:
        self._folder = folder
        self._span = span
        self._asked = asked
        self._options = hudi.HudiReadOptions()
        _require_known_types(folder)
        if span.last is not None:
            as_of = folder.as_of(span.last)
            self._options = self._options.with_as_of_timestamp(as_of)
            if not isinstance(asked.question, ReadOptimized):
                _require_compacted(folder, as_of)
        # It reads a URI as one: a name may have a blank, a # or a %.
        uri, options = quote(folder.place.path.uri, safe=":/"), _storage_options(folder.place)
        self._table = self._by_hudi_rs(lambda: hudi.HudiTable(uri, options))
        found: pa.Schema = self._by_hudi_rs(self._table.get_schema_with_meta_fields)
        self._slices: list[hudi.HudiFileSlice] = []
        if span.last is not None:
            self._slices = self._by_hudi_rs(lambda: self._table.get_file_slices(self._options))
        self.schema = pa.schema([field.with_nullable(True) for field in found])
        """The table's columns as of its newest commit, Hudi's own before them."""

    @property
    def about(self) -> str:
        told = told_of(self._span, self._asked.now)
        if not isinstance(self._asked.question, ReadOptimized):
            return f"{self._folder.told}, {told}"
        with_logs = [one for one in self._slices if one.log_file_names]
        base = min((one.creation_instant_time for one in with_logs), default="")
        left_out = sum(len(one.log_file_names) for one in with_logs)
        return f"{self._folder.told}, {staleness(self._folder, base, left_out, self._asked.now)}"

    @contextmanager
    def answered(self, statement: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        """See `Source`."""
        if statement is not None:
            with sql.answered(statement, self.schema, self.read) as rows:
                yield first(limit, rows)
            return
        own = [name for name in self.schema.names if not name.startswith("_hoodie_")]
        with sql.kept(first(limit, self.read(own))) as rows:
            yield rows

    def require_kept(self) -> None:
        """See `Source`."""
        self._folder.require_kept(self._span.last)

    def leave_out(self, other: HudiRs) -> None:
        """Read none of the base files that another version of the table has as well, and neither does that.

        Those with log files stay: which of these a version has, hudi-rs finds out as it reads them.
        """
        common = self._merged & other._merged
        for one in (self, other):
            one._slices = [found for found in one._slices if (found.partition_path, found.base_file_name) not in common]

    @property
    def _merged(self) -> set[tuple[str, str]]:
        return {(one.partition_path, one.base_file_name) for one in self._slices if not one.log_file_names}

    def read(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Columns of the rows that the question is about, file by file; see `sql.Read`."""
        schema = pa.schema([self.schema.field(name) for name in columns or [COMMIT_TIME]])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        commits = self._span.commits
        written = None if commits is None else pa.array([version.name for version in commits])
        needed = schema.names if commits is None else [*dict.fromkeys([*schema.names, COMMIT_TIME])]
        options = self._options.with_projection(needed)
        if isinstance(self._asked.question, ReadOptimized):
            options = options.with_hudi_option(_READ_OPTIMIZED, "true")
        reader = self._by_hudi_rs(lambda: self._table.create_file_group_reader_with_options(options))
        for one in self._slices:
            if commits is not None and not self._may_hold(one, commits[0].name):
                continue
            # Not the slice: where a log file is of an earlier instant than the base file, it would read that alone.
            files = one.base_file_relative_path(), one.log_files_relative_paths()
            batches = self._by_hudi_rs(partial(reader.read_file_slice_from_paths_stream, *files, options))
            while (batch := self._by_hudi_rs(partial(next, batches, None))) is not None:
                if written is not None:
                    batch = batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=written))
                yield _as(schema, batch, self._folder.partition_fields)

    def _may_hold(self, one: hudi.HudiFileSlice, first: str) -> bool:
        """Whether rows of a commit, or of later ones, may be in the files of a slice; their names have the instants."""
        if self._folder.timeline.layout == 1 and one.log_file_names:
            return True  # those of logs have the base file's
        return one.creation_instant_time >= first or any(instant_of_log(name) >= first for name in one.log_file_names)

    def _by_hudi_rs(self, call: Callable[[], Given]) -> Given:
        """What a call of it gives. It tries each request for three minutes: the store is looked at meanwhile."""
        # Half of the time that we wait for a store is the look's own.
        half = self._folder.place.patience / 2
        folder = replace(self._folder, place=replace(self._folder.place, patience=half))
        with folder.reading(self._span.last), _in_our_words(folder.place):
            return awaited(call, half.total_seconds(), folder.require_answer)


def _require_known_types(folder: HudiFolder) -> None:
    """Of a type that is left to do in it hudi-rs panics, with a backtrace on the terminal."""
    if column := next((name for name, kind in folder.columns.items() if _LOCAL_TIME in json.dumps(kind)), None):
        raise UnreadableError(
            f"the table at {folder.place.path} has a timestamp_ntz column ({column}), which {ENGINE} does not read; "
            "--engine spark does"
        )


def _require_compacted(folder: HudiFolder, as_of: str) -> None:
    """In version 6 log files belong to a base file from when its compaction is planned; hudi-rs 0.5.0 passes over those
    of one that is not there yet, without a word."""
    pending = [one for one in folder.timeline.pending if one.action == "compaction" and one.requested <= as_of]
    if folder.timeline.layout == 1 and pending:
        raise UnreadableError(
            f"a compaction of the table at {folder.place.path} is under way ({pending[0].requested}), and {ENGINE} "
            "does not see what was written since it was planned. Ask again, or with --engine spark"
        )


def _as(schema: pa.Schema, batch: pa.RecordBatch, partition_fields: Sequence[str]) -> pa.RecordBatch:
    """A batch with the columns of the table as it is now: files keep those that they were written with."""
    there = set(batch.schema.names)
    columns = []
    for field in schema:
        column = pa.nulls(batch.num_rows, field.type)
        if field.name in there:
            column = batch.column(field.name).cast(field.type)
        if field.name in partition_fields and pa.types.is_string(field.type):
            # One partition for both, which is null to Hive, Spark and Hudi; the file still has what was written.
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, field.type), column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _storage_options(place: StoreSettings) -> dict[str, str]:
    if place.path.scheme is Scheme.FOLDER:
        return {}
    from lakestream.s3_credentials import CredentialChain  # imports botocore, as for `open_store`

    credentials = CredentialChain()()
    options = {
        "aws_region": place.s3.region,
        "aws_access_key_id": credentials["access_key_id"],
        "aws_secret_access_key": credentials["secret_access_key"],
    }
    if token := credentials.get("token"):
        options["aws_session_token"] = token
    if place.s3.endpoint is not None:
        options |= {
            "aws_endpoint": place.s3.endpoint,
            "aws_virtual_hosted_style_request": "false",
            "aws_allow_http": str(place.s3.endpoint.startswith("http://")).lower(),
        }
    return options


@contextmanager
def _in_our_words(place: StoreSettings) -> Iterator[None]:
    try:
        yield
    except (GeneratorExit, KeyboardInterrupt, SystemExit, LakeStreamError):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        if place.path.scheme is Scheme.S3 and (failed := failure_of_s3(f"read {place.path} by {ENGINE}", str(error))):
            raise failed from error
        said = shorten(str(error) or type(error).__name__, 200, placeholder=" …")
        raise UnreadableError(
            f"{ENGINE} cannot read the table at {place.path}: {said}. Should files have been cleaned meanwhile, "
            "ask again; else --engine spark reads it"
        ) from error
