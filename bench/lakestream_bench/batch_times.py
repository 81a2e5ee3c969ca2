"""What a batch costs by its size: the model `T = a + w·n/p` of autoscaler and simulator, fitted.

Only batches that ran alone count: otherwise their stages wait for those of another. The local Kinesis runs on the same
cores, and works while a batch is fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from lakestream_api import Progress
from lakestream_bench._ingestion import SHARDS, START_SECONDS, STREAM, WRITERS, Ingestion, Orders, Trigger, ingest, now
from lakestream_bench._options import out_file
from lakestream_bench._processes import failure, no_process_left
from lakestream_bench._telling import Telling
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import local_kinesis

SIZES = (2_000, 10_000, 20_000, 50_000, 100_000)
ROUNDS = 4
WARM_UP = (20_000, 20_000, 50_000, 20_000, 100_000, 20_000, 50_000, 100_000)
"""Batches in which the JVM compiles what a batch runs; not counted."""
RECORDS_PER_TASK = 10_000
"""The planner makes no more tasks than a batch has records for."""


@dataclass(frozen=True)
class Batch:
    """One measured batch."""

    records: int
    bytes: int
    tasks: int
    """That ran at once."""
    prepare_seconds: float
    """Planning and fetching."""
    finish_seconds: float
    """Writing and committing."""


@dataclass(frozen=True)
class Line:
    """Least squares of `seconds = fixed + per_record · records / tasks`."""

    fixed: float
    """Seconds."""
    per_record: float
    """Core-seconds."""
    r2: float
    """Share of the variance that the line explains."""
    residual: float
    """Standard deviation of measured through predicted."""


@dataclass(frozen=True)
class Fit:
    """The two stages of one writer, which run side by side in a backlog."""

    prepare: Line
    finish: Line
    batches: tuple[Batch, ...]


def measure(kind: str, folder: Path) -> Fit:
    """Batches of all sizes, in mixed order, in one driver."""
    sizes = list(SIZES * ROUNDS)
    random.Random(1).shuffle(sizes)
    with local_kinesis(limits=Limits.none()) as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        with ingest(server, folder, kind, Trigger("5s", 1_000_000), until_caught_up=False) as run:
            for size in WARM_UP:
                _put(orders, run, size)
            warm = len(run.batches())
            for size in sizes:
                _put(orders, run, size)
            return fit(run.batches()[warm - 1 :])


def fit(batches: Sequence[Progress]) -> Fit:
    """Lines through the batches that ran alone; the first one only tells when the second may begin."""
    alone = [
        batch
        for before, batch, after in zip(batches, batches[1:], [*batches[2:], None], strict=False)
        if before.finished_at <= _began(batch) and (after is None or batch.finished_at <= _began(after))
    ]
    found = [_batch(batch) for batch in alone]
    prepare = fit_line([(b.records / b.tasks, b.prepare_seconds) for b in found])
    finish = fit_line([(b.records / b.tasks, b.finish_seconds) for b in found])
    return Fit(prepare, finish, tuple(found))


def _put(orders: Orders, run: Ingestion, size: int) -> None:
    """Put records at once, and wait until they are committed: in one batch, or in two if the trigger comes between."""
    target = sum(batch.records for batch in run.batches()) + size
    orders.put(size)
    deadline = time.monotonic() + START_SECONDS
    while sum(batch.records for batch in run.batches()) < target:
        if run.process.poll() is not None or time.monotonic() > deadline:
            raise failure(f"{size} records were not read", run.log)
        time.sleep(0.2)
    time.sleep(1)  # what runs beside ingestion, such as cleaning, has time to end


def _began(batch: Progress) -> datetime:
    return batch.finished_at - timedelta(seconds=batch.seconds.total)


def _batch(progress: Progress) -> Batch:
    cores = os.cpu_count() or 1
    seconds = progress.seconds
    return Batch(
        records=progress.records,
        bytes=progress.bytes,
        tasks=max(1, min(cores, SHARDS, -(-progress.records // RECORDS_PER_TASK))),
        prepare_seconds=seconds.plan + seconds.fetch,
        finish_seconds=seconds.write + seconds.commit + seconds.table_services,
    )


def fit_line(points: Sequence[tuple[float, float]]) -> Line:
    """The line through points of (records per task, seconds)."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    fixed = mean_y - slope * mean_x
    left = sum((y - fixed - slope * x) ** 2 for x, y in points)
    total = sum((y - mean_y) ** 2 for _, y in points)
    ratios = [y / (fixed + slope * x) for x, y in points]
    mean = sum(ratios) / count
    residual = (sum((ratio - mean) ** 2 for ratio in ratios) / count) ** 0.5
    return Line(fixed, slope, 1 - left / total, residual)


def main() -> int:
    """Print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=out_file, required=True, help="gets the figures as JSON")
    parser.add_argument("--writers", nargs="+", choices=list(WRITERS), default=list(WRITERS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:
        telling = Telling(len(arguments.writers))
        fits: dict[str, Fit] = {}
        for kind in arguments.writers:
            with telling.measuring(f"{kind}, {len(WARM_UP)} batches to warm up and {len(SIZES) * ROUNDS} measured"):
                fits[kind] = measure(kind, Path(scratch) / kind)
    print(f"{len(SIZES) * ROUNDS} batches of {SIZES[0]:,} to {SIZES[-1]:,} records, {os.cpu_count()} cores")
    print(f"{'writer':8}{'stage':>9}{'fixed s':>9}{'µs/record':>11}{'r²':>7}{'residual':>10}")
    for kind, found in fits.items():
        for stage, line in (("prepare", found.prepare), ("finish", found.finish)):
            micros = line.per_record * 1e6
            print(f"{kind:8}{stage:>9}{line.fixed:>9.2f}{micros:>11.1f}{line.r2:>7.3f}{line.residual:>9.0%}")
    figures = {
        "measured_at": now(),
        "cores": os.cpu_count(),
        "writers": {kind: asdict(found) for kind, found in fits.items()},
    }
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
