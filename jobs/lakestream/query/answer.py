"""From a question to rows on the way out: what is asked about, who answers, and what is told of it."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Protocol

import pyarrow as pa

from lakestream.errors import SettingsError
from lakestream.query.errors import FilesGoneError, UnreadableError
from lakestream.query.form import Format
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.kept import take_back
from lakestream.query.output import write_rows
from lakestream.query.question import Asked, Engine, NetChanges, ReadOptimized, SparkRun, names_a_time
from lakestream.query.spans import comparison_of, span_of
from lakestream.query.target import Kind, Target

if TYPE_CHECKING:
    from lakestream.query.hudi_spark import HudiSpark

logger = logging.getLogger(__name__)


class Source(Protocol):
    """A table that one engine reads, as a question looks at it."""

    engine: str
    """Name and version."""

    @property
    def about(self) -> str:
        """What of the table is read, in words."""
        ...

    def answered(self, sql: str | None, limit: int | None) -> AbstractContextManager[pa.RecordBatchReader]:
        """The rows.

        Raises:
            SqlError: of the query.
            UnreadableError: this engine cannot read the table.
        """
        ...

    def require_kept(self) -> None:
        """Check that all files were there to be read.

        Raises:
            FilesGoneError: some may have been removed before they were listed.
        """
        ...


def answer(target: Target, asked: Asked, engine: Engine, run: SparkRun, form: Format, out: BinaryIO) -> str:
    """Write the rows that answer; returns what is to be told of them.

    Args:
        target: the table.
        asked: the question.
        engine: which may answer.
        run: how Spark is asked, if it is.
        form: of what goes to `out`: all, unless Spark writes it elsewhere.
        out: gets the rows.

    Raises:
        SettingsError: the question is none, or about what is not there.
        UnreadableError: the engine that was asked for cannot read the table.
        FilesGoneError: files were removed meanwhile.
        LakeStreamError: of storage or log, as told there.
    """
    if engine is not Engine.SPARK:
        try:
            return _write(_native(target, asked), asked, form, out)
        except UnreadableError as error:
            if engine is Engine.NATIVE or target.kind is Kind.JSON:
                raise
            logger.warning("%s; Spark is asked instead", error)
    spark = _spark(target, asked, run)
    if run.to is None:
        return _write(spark, asked, form, out)
    count = spark.write(asked.sql, asked.limit, run.to.path)
    try:
        spark.require_kept()
    except FilesGoneError:
        take_back(run.to)
        raise
    return f"{_told(spark, asked, count)}, written to {run.to.path}"


def _write(source: Source, asked: Asked, form: Format, out: BinaryIO) -> str:
    # Nothing is written before all was read: what fails then has written nothing.
    with source.answered(asked.sql, asked.limit) as rows:
        source.require_kept()
        count = write_rows(rows, form, out)
    return _told(source, asked, count)


def _told(source: Source, asked: Asked, count: int) -> str:
    told = "1 row" if count == 1 else f"{count:,} rows"
    more = " (there may be more: --limit)" if count == asked.limit else ""
    return f"{told}{more} of {source.about}, by {source.engine}"


def _native(target: Target, asked: Asked) -> Source:
    match target.kind:
        case Kind.HUDI:
            from lakestream.query.hudi_rs import HudiRs
            from lakestream.query.net_changes import HudiRsChanges

            folder = _folder(target, asked)
            if isinstance(asked.question, NetChanges):
                return HudiRsChanges(folder, comparison_of(asked.question, folder.history, asked.now), asked)
            return HudiRs(folder, span_of(asked.question, folder.history, asked.now), asked)
        case Kind.JSON:
            from lakestream.query.json_duckdb import JsonDuckDb
            from lakestream.query.json_log import JsonLog

            if isinstance(asked.question, ReadOptimized):
                raise SettingsError("--read-optimized: JSON files have no log files that could be left out")
            if isinstance(asked.question, NetChanges):
                raise SettingsError("--changes: JSON files only gain rows; leave it out, and --since tells which")
            log = JsonLog.look(target.table, target.required_log())
            return JsonDuckDb(log, span_of(asked.question, log.history, asked.now), asked)


def _folder(target: Target, asked: Asked) -> HudiFolder:
    folder = HudiFolder.look(target.table)
    if not folder.is_in_utc and names_a_time(asked.question):
        logger.warning(
            "the instants of %s are in the local time of who wrote them (hoodie.table.timeline.timezone), and taken "
            "for UTC: if that was another zone, give an instant in place of a time",
            target.table.path,
        )
    return folder


def _spark(target: Target, asked: Asked, run: SparkRun) -> HudiSpark:
    if target.kind is Kind.JSON:
        raise SettingsError("JSON files are read without Spark: leave --engine out")
    from lakestream.query.hudi_spark import HudiSpark, HudiSparkChanges

    folder = _folder(target, asked)
    if isinstance(asked.question, NetChanges):
        return HudiSparkChanges(folder, comparison_of(asked.question, folder.history, asked.now), asked, run)
    return HudiSpark(folder, span_of(asked.question, folder.history, asked.now), asked, run)
