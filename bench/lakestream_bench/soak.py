"""Many batches in a row: does a batch take longer, or the driver more, than at the beginning?"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from lakestream_api import Progress
from lakestream_bench._ingestion import SHARDS, STREAM, WRITERS, Ingestion, Orders, Trigger, ingest, now
from lakestream_bench._jvm import heap_after_collection
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_localkinesis.testing import local_kinesis

BATCHES = 200
"""Unless others are asked for."""
WINDOW = 40
"""Batches at the beginning and at the end that are compared."""
WARM_UP = 40
"""Batches before the first window: the JVM compiles what it runs often, for about a minute."""
MOST_SECONDS = 10
"""For a batch; a driver that takes longer is given up."""
RATE = 500
"""Records per second; small batches, whose cost is the fixed one."""


@dataclass(frozen=True)
class Sample:
    """The driver at one moment."""

    resident_mebibytes: float
    """Of Python, the JVM and its workers together."""
    heap_mebibytes: float
    """In use of the JVM's heap, once all garbage was collected."""
    connections: int
    files: int
    """Open ones, of Python and the JVM."""
    log_objects: int
    """Objects of the checkpoint's log, all of which a starting driver lists."""


@dataclass(frozen=True)
class Soak:
    """The two windows side by side."""

    batches: int
    throttled: int
    """Records that were refused and sent again, because more than the shards take was due after a stutter."""
    first_batch_seconds: float
    """Median work per batch in the window at the beginning."""
    last_batch_seconds: float
    growth: float
    """Last divided by first."""
    first: Sample
    last: Sample


def soak(kind: str, folder: Path, wanted: int) -> Soak:
    """Run a writer at a steady trickle until it has done its batches."""
    with local_kinesis() as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        with ingest(server, folder, kind, Trigger("200ms"), until_caught_up=False) as run:
            first: Sample | None = None
            due = 0.0
            for passed in orders.stream(RATE, seconds=MOST_SECONDS * wanted):
                if passed < due:
                    continue
                done = len(run.batches())
                due = passed + max(1.0, done / 1_000)  # all of them are read each time
                if run.process.poll() is not None:
                    raise RuntimeError(f"lakestream ingest ended:\n{run.log.read_text()[-3000:]}")
                if first is None and done >= WARM_UP + WINDOW:
                    first = _sample(run, folder, kind)
                if done >= wanted:
                    break
            batches = run.batches()
            if first is None or len(batches) < wanted:
                raise RuntimeError(f"only {len(batches)} batches in {MOST_SECONDS * wanted:,} s")
            last = _sample(run, folder, kind)
    begin = _median(batches[WARM_UP : WARM_UP + WINDOW])
    end = _median(batches[wanted - WINDOW : wanted])
    return Soak(len(batches), orders.throttled, begin, end, end / begin, first, last)


def _median(batches: Sequence[Progress]) -> float:
    return statistics.median(batch.seconds.total for batch in batches)


def _sample(run: Ingestion, folder: Path, kind: str) -> Sample:
    driver = psutil.Process(run.process.pid)
    family = [driver, *driver.children(recursive=True)]
    log = folder / "checkpoint" / kind
    return Sample(
        resident_mebibytes=sum(process.memory_info().rss for process in family) / 2**20,
        heap_mebibytes=sum(heap_after_collection(one.pid) for one in family if one.name() == "java"),
        connections=sum(len(process.net_connections()) for process in family),
        files=sum(process.num_fds() for process in family),
        log_objects=sum(1 for name in ("batches", "commits", "epochs") for _ in (log / name).iterdir()),
    )


def main() -> int:
    """Print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="gets the figures as JSON")
    parser.add_argument("--writers", nargs="+", choices=list(WRITERS), default=["json", "mor"])
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"at least {WARM_UP + 2 * WINDOW}")
    arguments = parser.parse_args()
    if arguments.batches < WARM_UP + 2 * WINDOW:
        parser.error(f"--batches: {arguments.batches} are too few, the windows need {WARM_UP + 2 * WINDOW}")
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:
        telling = Telling(len(arguments.writers))
        results: dict[str, Soak] = {}
        for kind in arguments.writers:
            with telling.measuring(f"{kind}, {arguments.batches} batches"):
                results[kind] = soak(kind, Path(scratch) / kind, arguments.batches)
    print(f"{arguments.batches} batches at {RATE} records/s; at batch {WARM_UP + WINDOW} and at the end")
    print(
        f"{'writer':8}{'batch s':>16}{'memory MiB':>16}{'heap MiB':>14}"
        f"{'connections':>14}{'files':>12}{'log objects':>14}"
    )
    for kind, result in results.items():
        first, last = result.first, result.last
        print(
            f"{kind:8}{result.first_batch_seconds:>7.2f} → {result.last_batch_seconds:.2f}"
            f"{first.resident_mebibytes:>9.0f} → {last.resident_mebibytes:.0f}"
            f"{first.heap_mebibytes:>9.0f} → {last.heap_mebibytes:.0f}"
            f"{first.connections:>7} → {last.connections}{first.files:>7} → {last.files}"
            f"{first.log_objects:>7} → {last.log_objects}"
        )
    figures = {"measured_at": now(), "writers": {kind: asdict(result) for kind, result in results.items()}}
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
