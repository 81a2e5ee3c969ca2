"""Who is asked: Spark as it comes, and hudi-rs with DuckDB as `lakestream query` uses them."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lakestream.query.answer import answer as answer_native
from lakestream.query.form import Format
from lakestream.query.moments import Commit
from lakestream.query.question import TABLE as LAKE
from lakestream.query.question import Asked, Changes, Engine, NetChanges, Question, ReadOptimized, Snapshot, SparkRun
from lakestream.query.target import Kind, Target
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_bench.compare.arms import Arm
from lakestream_bench.compare.method import NATIVE, SPARK
from lakestream_bench.compare.queries import TABLE, View, difference, newest
from lakestream_bench.compare.tables import Moment, answer, name_table, stock_session
from lakestream_bench.compare.truth import Answer
from lakestream_bench.compare.usage import SparkCpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TableAt:
    """A table of an arm, and the moment that changes and the past are told by."""

    arm: Arm
    folder: Path
    log: Path
    """Of its writer, in the checkpoint."""
    moment: Moment


class Asking(Protocol):
    """An engine that nobody has asked before."""

    def ask(self, table: TableAt, view: View, sql: str) -> Answer:
        """Name a view of the table and ask it, in Spark's SQL."""
        ...


class QueryEngine(Protocol):
    """An engine."""

    @property
    def name(self) -> str: ...
    def begin(self) -> Asking:
        """Without anything kept from earlier questions."""
        ...

    def cpu_seconds(self) -> float:
        """That it has used so far."""
        ...


class SparkEngine:
    """Spark with Hudi's reader, in the JVM of the comparison."""

    name = SPARK

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._cpu = SparkCpu(spark)

    def begin(self) -> Asking:
        return _AskingSpark(stock_session(self._spark))

    def cpu_seconds(self) -> float:
        return self._cpu.seconds()


@dataclass(frozen=True)
class _AskingSpark:
    session: SparkSession

    def ask(self, table: TableAt, view: View, sql: str) -> Answer:
        name_table(self.session, table.arm, table.folder.as_uri(), view, table.moment)
        return answer(self.session, sql)


class NativeEngine:
    """What `lakestream query` asks: hudi-rs and DuckDB, in this process. The start of a process is not counted."""

    name = NATIVE

    def begin(self) -> Asking:
        return _AskingNative()

    def cpu_seconds(self) -> float:
        return time.process_time()


class _AskingNative:
    def ask(self, table: TableAt, view: View, sql: str) -> Answer:
        place = StoreSettings(LakePath.parse(str(table.folder)), S3Settings("us-east-1"))
        if table.arm.has_keys:
            target = Target(Kind.HUDI, place, None)
            asked = sql.replace(f"FROM {TABLE}", f"FROM {LAKE}")
        else:
            target = Target(Kind.JSON, place, StoreSettings(LakePath.parse(str(table.log)), place.s3))
            asked = f"WITH {TABLE} AS ({_json(view, table.moment)}) {sql}"
        out = io.BytesIO()
        question = Asked(_question(table, view), in_duckdb(asked), None, datetime.now(UTC))
        answer_native(target, question, Engine.NATIVE, SparkRun(), Format.ARROW, out)
        with pa.ipc.open_stream(out.getvalue()) as reader:
            rows = reader.read_all()
        columns = [column.to_pylist() for column in rows.columns]
        return tuple(tuple(str(value) for value in row) for row in zip(*columns, strict=True))


def in_duckdb(sql: str) -> str:
    """The comparison's SQL as DuckDB takes it: but for this function both know the same."""
    return sql.replace("unix_millis(", "epoch_ms(").replace(" struct(", " struct_pack(")


def _json(view: View, moment: Moment) -> str:
    """Lines of JSON have their batch with them, so changes are told by it; the past is a question about fewer files."""
    state = newest(LAKE)
    match view:
        case View.CHANGES:
            return f"SELECT * FROM ({state}) WHERE _batch >= {moment.batches}"
        case View.DIFFERENCE:
            return difference(state, newest(f"(FROM {LAKE} WHERE _batch < {moment.batches})"))
        case _:
            return state


def _question(table: TableAt, view: View) -> Question:
    moment = table.moment
    commit = Commit(str(moment.instant) if table.arm.has_keys else str(moment.batches - 1))
    match view:
        case View.PAST:
            return Snapshot(commit)
        case View.CHANGES if table.arm.has_keys:
            return Changes(commit)
        case View.DIFFERENCE if table.arm.has_keys:
            return NetChanges(commit)
        case View.READ_OPTIMIZED:
            return ReadOptimized()
        case _:
            return Snapshot()
