"""What keeping replaced files for an hour costs a Hudi table, beside keeping them for a minute.

    python -m lakestream_bench.hudi_retention [--by …] [--commits 360] [--rows 200] [--out hudi_retention.json]

At a batch every 10 s an hour has 360 commits. They are made one right after the other, so that nothing is old enough to
be removed: that is the table as it is from the end of its first hour on. Both tables get the same batches, in turns;
compaction (every ten commits of a merge-on-read table), cleaning and archiving are waited for and reported apart. A row
is told for each tenth of the commits. `--by version` and `--by clustering` (of inserts) compare other tables.

    commit     median seconds of a commit; CPU: of the JVM meanwhile, which other work on the machine disturbs less
    plan       mean seconds of a commit that planning compactions took; beside: mean CPU seconds of what follows it
    clean      seconds of the last round of cleaning; archive: of archiving
    load       seconds to list and load the active timeline, which each step of a commit does anew
    timeline   objects in it; a listing of S3 gives 1,000 at a time
    files, MB  of data, those that are to be removed some day included
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream.spark.session import SessionSettings, build_session
from lakestream_api import Operation, TableType, TableVersion
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_bench.hudi_commits import batch, cpu_seconds, ours, settings

VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "retention": {"an hour": {"retain": timedelta(hours=1)}, "a minute": {"retain": timedelta(minutes=1)}},
    "version": {
        f"version {version.value}": {"table_version": version, "retain": timedelta(minutes=1)}
        for version in TableVersion
    },
    "clustering": {
        name: {"operation": Operation.INSERT, "cluster_into": size, "retain": timedelta(minutes=1)}
        for name, size in (("appended", None), ("clustered", 128 << 20))
    },
}
"""What each table has beside the settings of all."""
STEPS = 10


@dataclass(frozen=True)
class Kept:
    """A table after some commits."""

    table: str
    variant: str
    commits: int
    commit: float
    cpu: float
    plan: float
    beside: float
    clean: float
    archive: float
    load: float
    timeline: int
    files: int
    megabytes: float


@dataclass(frozen=True)
class Taken:
    """Of one commit: seconds, CPU seconds, those of them that planning took, and CPU seconds of what follows beside."""

    seconds: float
    cpu: float
    plan: float
    beside: float


def look(spark: SparkSession, table: HudiSettings, sink: HudiSink, variant: str, taken: Sequence[Taken]) -> Kept:
    folder = Path(table.path.removeprefix("file://"))
    data = [path.stat().st_size for path in folder.iterdir() if path.is_file() and path.suffix != ".crc"]
    last = taken[-max(1, len(taken) // STEPS) :]
    took = {service.name: service.seconds for service in sink.services}
    began = time.perf_counter()
    HudiTable(spark, table).meta_client().getActiveTimeline()
    return Kept(
        table=table.table_type.value,
        variant=variant,
        commits=len(taken),
        commit=statistics.median(one.seconds for one in last),
        cpu=statistics.median(one.cpu for one in last),
        plan=statistics.mean(one.plan for one in last),
        beside=statistics.mean(one.beside for one in last),
        clean=took["cleaning"],
        archive=took["archiving"],
        load=time.perf_counter() - began,
        timeline=sum(path.suffix != ".crc" for path in (folder / ".hoodie").glob("**/2*") if path.is_file()),
        files=len(data),
        megabytes=sum(data) / 1e6,
    )


def compare(
    spark: SparkSession,
    folder: Path,
    table_type: TableType,
    commits: int,
    rows: int,
    variants: Mapping[str, Mapping[str, Any]],
) -> list[Kept]:
    """Tables that differ in some settings, on the same batches."""
    sample = batch(spark, 0, 1)
    found: list[Kept] = []
    with ExitStack() as stack:
        tables = {
            name: replace(settings(folder, name.replace(" ", "-"), table_type), partition_by=(), **changes)
            for name, changes in variants.items()
        }
        writers = {name: stack.enter_context(ours(spark, table, sample)) for name, table in tables.items()}
        taken: dict[str, list[Taken]] = {name: [] for name in tables}
        jvm: Any = spark._jvm
        process = jvm.java.lang.ProcessHandle.current()
        for number in range(commits):
            made = batch(spark, number, rows)
            for name in list(writers)[:: 1 if number % 2 else -1]:
                sink, write = writers[name]
                began, worked = time.perf_counter(), cpu_seconds(process)
                stages = write(number, made)
                seconds, done = time.perf_counter() - began, cpu_seconds(process)
                sink.finish_services()
                beside = cpu_seconds(process) - done
                taken[name].append(Taken(seconds, done - worked, stages["plan"], beside))
            made.unpersist()
            if (number + 1) % max(1, commits // STEPS) == 0:
                found += [look(spark, tables[name], sink, name, taken[name]) for name, (sink, _) in writers.items()]
                show(found[-len(tables) :])
    return found


def show(kept: Sequence[Kept]) -> None:
    for one in kept:
        print(
            f"{one.table:14} {one.variant:9} {one.commits:5} commits  commit {one.commit:6.2f}  CPU {one.cpu:5.2f}  "
            f"plan {one.plan:5.2f}  beside {one.beside:5.2f}  "
            f"clean {one.clean:6.2f}  "
            f"archive {one.archive:6.2f}  load {one.load:6.3f}  timeline {one.timeline:5}  files {one.files:6}  "
            f"MB {one.megabytes:8.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=list(VARIANTS), default="retention", help="what the tables differ in")
    parser.add_argument("--commits", type=whole(), default=360)
    parser.add_argument("--rows", type=whole(), default=200, help="of a batch")
    parser.add_argument(
        "--tables", nargs="+", choices=[kind.name for kind in TableType], default=list(TableType.__members__)
    )
    parser.add_argument("--out", type=out_file, default=None)
    options = parser.parse_args()
    kinds = [TableType[name] for name in options.tables]
    kept: list[Kept] = []
    with tempfile.TemporaryDirectory() as folder:
        telling = Telling(len(kinds))
        spark = build_session(SessionSettings("hudi-tables", cores=2, hudi=True, local_dir=Path(folder) / "spark"))
        for kind in kinds:
            with telling.measuring(f"{kind.value}, {options.commits} batches"):
                kept += compare(spark, Path(folder), kind, options.commits, options.rows, VARIANTS[options.by])
        spark.stop()
    if options.out:
        options.out.write_text(json.dumps([asdict(one) for one in kept], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with no_process_left():
        main()
