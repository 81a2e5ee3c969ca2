"""The fixed cost of a Hudi commit: ours beside Hudi's defaults, on the same batches in the same run.

    python -m lakestream_bench.hudi_commits [--commits 20] [--rows 500] [--out hudi_commits.json]

Upserts of order events, four partitions, one fifth of them new keys. Of each batch, every contender makes a commit of
its own table, in changing order:

    ours      the sink as `lakestream ingest` runs it: bucket index; compaction and cleaning in its second thread
    deletes   ours with `deleteWhen`: deleted keys are remembered, and looked up for each batch
    defaults  `df.write.format("hudi")` with key, partition and ordering field, and nothing else

A contender's time is from the call to the visible commit; its CPU time is that of the JVM meanwhile, which other work
on the machine disturbs less. What ours does beside is waited for before the next contender begins, and reported apart.
`soak` tells whether commits grow longer with their number.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.spark.session import SessionSettings, build_session
from lakestream_api import TableType
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling

WARM_UP = 6
"""Commits of each contender that are not counted: the JVM compiles, Hudi's classes load."""
CHECKPOINT = "benchmark"
KEYS = 50_000


@dataclass(frozen=True)
class Commits:
    """One contender at one batch size; all in seconds."""

    table: str
    contender: str
    rows: int
    commits: int
    median: float
    mean: float
    highest: float
    cpu: float
    """Median CPU seconds."""
    beside: float
    """Mean seconds that compaction and cleaning went on after the commit."""
    stages: dict[str, float] = field(default_factory=dict)
    """Medians, ours only."""


Write = Callable[[int, DataFrame], dict[str, float]]
"""Makes a commit of a batch; returns its stages."""


def batch(spark: SparkSession, number: int, rows: int) -> DataFrame:
    """A batch that is the same for every contender, in memory."""
    # An update of a key that is there, or a key that is new; versions grow with the batches.
    key = f"if(id % 5 = 0, {KEYS} + {number} * 1000000 + id, pmod(xxhash64(id, {number}), {KEYS}))"
    made = (
        spark.range(rows, numPartitions=2)
        .selectExpr(f"{key} as n", "id")
        .selectExpr(
            "concat('order-', n) as order_id",
            f"cast({number} as long) * 1000000 + id as version",
            "concat('event-', hex(xxhash64(n, id))) as event_id",
            "concat('customer-', n % 1000) as customer_id",
            "cast(n % 10000 as double) / 100 as amount",
            "if(id % 20 = 7, 'd', 'u') as op",
            "repeat('x', 60) as note",
            "concat('2026-01-0', 1 + n % 4) as dt",
        )
        .persist()
    )
    made.count()
    return made


def settings(folder: Path, name: str, table_type: TableType) -> HudiSettings:
    return HudiSettings(
        path=f"file://{folder}/{name}_{table_type.value.lower()}",
        table=name,
        record_key=("order_id",),
        ordering_field="version",
        table_type=table_type,
        partition_by=("dt",),
    )


@contextmanager
def ours(spark: SparkSession, table: HudiSettings, output: DataFrame) -> Iterator[tuple[HudiSink, Write]]:
    sink = HudiSink(spark, table)
    sink.prepare(output.schema)

    def write(number: int, rows: DataFrame) -> dict[str, float]:
        return dict(sink.write(BatchRef(number, CHECKPOINT), rows, replay=False).seconds)

    try:
        yield sink, write
    finally:
        sink.close()


def defaults(table: HudiSettings) -> Write:
    options = {
        "hoodie.table.name": table.table,
        "hoodie.datasource.write.table.type": table.table_type.value,
        "hoodie.datasource.write.recordkey.field": "order_id",
        "hoodie.datasource.write.partitionpath.field": "dt",
        "hoodie.table.ordering.fields": "version",
    }

    def write(_: int, rows: DataFrame) -> dict[str, float]:
        rows.write.format("hudi").options(**options).mode("append").save(table.path)
        return {}

    return write


@dataclass
class Samples:
    """What was measured of one contender at one batch size."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    stages: list[dict[str, float]] = field(default_factory=list)

    def summary(self, table: str, contender: str, rows: int) -> Commits:
        return Commits(
            table=table,
            contender=contender,
            rows=rows,
            commits=len(self.seconds),
            median=statistics.median(self.seconds),
            mean=statistics.mean(self.seconds),
            highest=max(self.seconds),
            cpu=statistics.median(self.cpu),
            beside=statistics.mean(self.beside),
            stages={part: statistics.median(stages[part] for stages in self.stages) for part in self.stages[0]},
        )


def compare(
    spark: SparkSession, folder: Path, table_type: TableType, commits: int, sizes: Sequence[int]
) -> list[Commits]:
    """All contenders on the same batches."""
    sample = batch(spark, 0, 1)
    plain = settings(folder, "ours", table_type)
    deleting = replace(settings(folder, "deletes", table_type), delete_when="op = 'd'")
    jvm: Any = spark._jvm
    process = jvm.java.lang.ProcessHandle.current()
    with ours(spark, plain, sample) as (sink, write), ours(spark, deleting, sample) as (other_sink, other_write):
        contenders: dict[str, Write] = {
            "ours": write,
            "deletes": other_write,
            "defaults": defaults(settings(folder, "defaults", table_type)),
        }
        names = list(contenders)
        samples = {(rows, name): Samples() for rows in sizes for name in names}
        for number in range(WARM_UP + commits * len(sizes)):
            rows = sizes[number % len(sizes)]
            made = batch(spark, number, rows)
            # Each comes first as often as the others: a batch's first reader has its cache still cold.
            for name in (*names[number % len(names) :], *names[: number % len(names)]):
                worked, began = cpu_seconds(process), time.perf_counter()
                stages = contenders[name](number, made)
                committed, worked = time.perf_counter(), cpu_seconds(process) - worked
                for finished in (sink, other_sink):
                    finished.finish_services()
                if number >= WARM_UP:
                    taken = samples[rows, name]
                    taken.seconds.append(committed - began)
                    taken.cpu.append(worked)
                    taken.beside.append(time.perf_counter() - committed)
                    taken.stages.append(stages)
            made.unpersist()
    return [taken.summary(table_type.value, name, rows) for (rows, name), taken in samples.items()]


def cpu_seconds(process: Any) -> float:
    """CPU time that the JVM has used so far, to 10 ms."""
    return float(process.info().totalCpuDuration().get().toMillis()) / 1000


def show(compared: Sequence[Commits]) -> None:
    print(
        f"{'table':15} {'rows':>6} {'contender':9} {'median s':>9} {'mean s':>8} {'CPU s':>9} "
        f"{'of defaults':>11} {'CPU':>5} {'beside s':>8}"
    )
    for found in compared:
        base = next(c for c in compared if (c.table, c.rows, c.contender) == (found.table, found.rows, "defaults"))
        print(
            f"{found.table:15} {found.rows:6} {found.contender:9} {found.median:9.2f} {found.mean:8.2f} "
            f"{found.cpu:9.2f} {found.median / base.median:11.0%} {found.cpu / base.cpu:5.0%} {found.beside:8.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=whole(), default=20, help="of each contender and batch size")
    parser.add_argument("--rows", type=whole(), nargs="+", default=[500], help="batch sizes")
    parser.add_argument(
        "--tables", nargs="+", choices=[kind.name for kind in TableType], default=list(TableType.__members__)
    )
    parser.add_argument("--out", type=out_file, default=None)
    options = parser.parse_args()
    kinds = [TableType[name] for name in options.tables]
    compared: list[Commits] = []
    with tempfile.TemporaryDirectory() as folder:
        telling = Telling(len(kinds))
        spark = build_session(SessionSettings("hudi-commits", cores=2, hudi=True, local_dir=Path(folder) / "spark"))
        for kind in kinds:
            with telling.measuring(f"{kind.value}, {WARM_UP + options.commits * len(options.rows)} batches"):
                compared += compare(spark, Path(folder), kind, options.commits, options.rows)
        spark.stop()
    show(compared)
    if options.out:
        figures = [asdict(found) for found in compared]
        options.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with no_process_left():
        main()
