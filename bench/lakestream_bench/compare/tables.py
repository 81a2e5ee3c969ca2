"""Names a table of an arm in Spark, as any user of it would: without our session's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakestream_bench.compare.arms import PARTITION, Arm
from lakestream_bench.compare.queries import TABLE, View, difference, newest
from lakestream_bench.compare.truth import Answer
from lakestream_loadgen.events import EVENT_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOW, _THEN = "compared_now", "compared_then"
_JSON_SCHEMA = f"{EVENT_DDL}, _arrival timestamp, {PARTITION} string"
_OURS = ("spark.sql.shuffle.partitions", "spark.sql.inMemoryColumnarStorage.compressed")
"""What our session sets and queries would notice."""


@dataclass(frozen=True)
class Moment:
    """The point that changes are counted from, and that time travel goes to."""

    arrived: datetime
    """Behind the arrival of the last event before it."""
    completed: str | None
    """Hudi's completion time of the last commit before it; None: the table is of JSON."""
    instant: str | None
    """Hudi's instant of that commit."""
    batches: int
    """That were visible then."""


def stock_session(spark: SparkSession) -> SparkSession:
    """A session of its own in the same JVM, with Spark's own settings for queries."""
    session = spark.newSession()
    for name in _OURS:
        session.conf.unset(name)
    return session


def name_table(spark: SparkSession, arm: Arm, path: str, view: View, moment: Moment) -> None:
    """Let `TABLE` stand for a view of an arm's table.

    Args:
        spark: a session that is used for nothing else.
        arm: what wrote it.
        path: of the table, as a URI.
        view: what is to be seen.
        moment: of views of changes and of the past.
    """
    read = _hudi if arm.has_keys else _json
    if view is View.DIFFERENCE:
        for name, state in ((_NOW, View.STATE), (_THEN, View.PAST)):
            read(spark, path, state, moment).createOrReplaceTempView(name)
        frame = spark.sql(difference(f"SELECT * FROM {_NOW}", f"SELECT * FROM {_THEN}"))
    else:
        frame = read(spark, path, view, moment)
    frame.createOrReplaceTempView(TABLE)


def name_events(spark: SparkSession, path: str) -> None:
    """Let `TABLE` stand for the lines of JSON as they are."""
    spark.read.schema(_JSON_SCHEMA).json(path).createOrReplaceTempView(TABLE)


def _hudi(spark: SparkSession, path: str, view: View, moment: Moment) -> DataFrame:
    reader = spark.read.format("hudi")
    if view is View.READ_OPTIMIZED:
        reader = reader.option("hoodie.datasource.query.type", "read_optimized")
    elif view is View.CHANGES:
        reader = reader.option("hoodie.datasource.query.type", "incremental")
        reader = reader.option("hoodie.datasource.read.begin.instanttime", str(moment.completed))
    elif view is View.PAST:
        reader = reader.option("as.of.instant", str(moment.completed))
    return reader.load(path)


def _json(spark: SparkSession, path: str, view: View, moment: Moment) -> DataFrame:
    events = spark.read.schema(_JSON_SCHEMA).json(path)
    cut = f"TIMESTAMP '{moment.arrived.isoformat()}'"
    if view is View.PAST:
        events = events.where(f"_arrival < {cut}")
    state = spark.sql(newest("{events}"), events=events)
    return state.where(f"_arrival >= {cut}") if view is View.CHANGES else state


def answer(session: SparkSession, sql: str) -> Answer:
    """The rows of a query."""
    return tuple(tuple(str(value) for value in row) for row in session.sql(sql).collect())


@dataclass(frozen=True)
class TableCommit:
    """A completed commit of a Hudi table."""

    instant: str
    completed: str
    action: str


def commits(spark: SparkSession, path: str) -> tuple[TableCommit, ...]:
    """Those in the active timeline, by completion."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(path).build()
    instants = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants().getInstants()
    found = [TableCommit(one.requestedTime(), one.getCompletionTime(), one.getAction()) for one in instants]
    return tuple(sorted(found, key=lambda one: one.completed))


def moment_of(arrived: datetime, batches: int, instants: Sequence[str | None], found: Sequence[TableCommit]) -> Moment:
    """The moment at which so many batches were visible.

    Args:
        arrived: behind the arrival of the last of their events.
        batches: how many.
        instants: of the batches' commits; None each if the writer is not told.
        found: the table's commits; none of a table without.
    """
    if not found:
        return Moment(arrived, None, None, batches)
    # Who is not told the instants writes nothing but batches; the oldest may be archived.
    told = instants[batches - 1]
    of_batch = next((one for one in found if one.instant == told), found[batches - 1 - len(instants)])
    return Moment(arrived, of_batch.completed, of_batch.instant, batches)


def since_compaction(found: Sequence[TableCommit]) -> int:
    """Delta commits behind the newest compaction, by the instants that they began with; all of them if there is none.

    A compaction takes in what was complete when it was planned, and shows in the timeline as a commit.
    """
    last = max((one.instant for one in found if one.action == "commit"), default="")
    return sum(one.action == "deltacommit" and one.instant > last for one in found)
