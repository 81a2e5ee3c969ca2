"""Many batches in a row: do they take longer, or the driver more, as time goes on?

    python -m lakestream_bench.soak --out soak.json [--writers mor] [--batches 3600] [--interval 1s] [--rate 2000]
        [--hudi 'cleaning: {retainHours: 0.1}']

A row is told for each stretch of the run, at once, and all of them at its end.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lakestream_api import Progress, parse_duration
from lakestream_bench._ingestion import (
    FULL_SHARD,
    SHARDS,
    STREAM,
    WRITERS,
    Ingestion,
    Orders,
    Trigger,
    freshness,
    ingest,
    now,
    require_hudi,
)
from lakestream_bench._jvm import heap_after_collection
from lakestream_bench._options import hudi_fields, out_file
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_localkinesis.testing import local_kinesis

BATCHES = 200
"""Unless others are asked for."""
WARM_UP = 40
"""Batches before the first stretch: the JVM compiles what it runs often, for about a minute."""
STRETCH = 40
"""Batches of a stretch, at least: fewer would tell of chance."""
MOST_STRETCHES = 10
MOST_SECONDS = 10
"""For a batch, beside the interval of triggers; a driver that takes longer is given up."""
RATE = 500
"""Records per second, unless another is asked for; small batches, whose cost is the fixed one."""
INTERVAL = "200ms"
"""Likewise: one batch directly after the other."""
MOST_RATE = FULL_SHARD * SHARDS * 3 // 4
"""What the shards take, with something left to make up for a stutter."""


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
class Stretch:
    """Batches one after the other, and the driver after the last of them."""

    batches: int
    """From the first of all to the last of these."""
    p50_seconds: float
    """Work per batch."""
    p99_seconds: float
    fresh_p50_seconds: float
    """From a record's arrival to the commit of its batch."""
    fresh_p99_seconds: float
    driver: Sample


@dataclass(frozen=True)
class Soak:
    """A writer's run."""

    interval: str
    records_per_second: int
    """Asked for, and put."""
    hudi: dict[str, Any]
    """Of the document's writer, beside the bench's own."""
    throttled: int
    """Records that were refused and sent again, because more than the shards take was due after a stutter."""
    stretches: list[Stretch]


def soak(kind: str, folder: Path, batches: int, interval: str, rate: int, hudi: dict[str, Any]) -> Soak:
    """Run a writer at a steady load until it has done its batches."""
    with local_kinesis() as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        with ingest(server, folder, kind, Trigger(interval), until_caught_up=False, hudi=hudi) as run:
            stretches: list[Stretch] = []
            ends = stretch_ends(batches)
            began = WARM_UP
            print(_COLUMNS, flush=True)
            most = most_seconds(batches, interval)
            for done in _progress(run, orders, rate, most):
                if len(done) >= ends[0]:
                    stretches.append(_stretch(done[began:], len(done), _sample(run, folder, kind)))
                    print(_row(stretches[-1]), flush=True)
                    began = len(done)
                    ends = [end for end in ends if end > began]
                if not ends:
                    return Soak(interval, rate, hudi, orders.throttled, stretches)
            raise RuntimeError(f"only {len(run.batches())} batches in {most:,.0f} s")


def most_seconds(batches: int, interval: str) -> float:
    """That so many batches may take: one begins when its trigger comes, and not before."""
    return batches * (MOST_SECONDS + parse_duration(interval).total_seconds())


def stretch_ends(batches: int) -> list[int]:
    """Numbers of batches after which a stretch ends; the stretches are of one length, the last is the longest."""
    count = min(MOST_STRETCHES, (batches - WARM_UP) // STRETCH)
    length = (batches - WARM_UP) // count
    return [*(WARM_UP + length * number for number in range(1, count)), batches]


def _progress(run: Ingestion, orders: Orders, rate: int, seconds: float) -> Iterator[list[Progress]]:
    """What was committed so far, again and again, while events are put."""
    due = 0.0
    for passed in orders.stream(rate, seconds):
        if passed < due:
            continue
        if run.process.poll() is not None:
            raise RuntimeError(f"lakestream ingest ended:\n{run.log.read_text()[-3000:]}")
        done = run.batches()
        due = passed + max(1.0, len(done) / 1_000)  # all of them are read each time
        yield done


def _stretch(batches: Sequence[Progress], number: int, driver: Sample) -> Stretch:
    work = sorted(batch.seconds.total for batch in batches)
    return Stretch(
        batches=number,
        p50_seconds=work[len(work) // 2],
        p99_seconds=work[len(work) * 99 // 100],
        fresh_p50_seconds=freshness(batches, "p50_seconds", 0.5),
        fresh_p99_seconds=freshness(batches, "p99_seconds", 0.99),
        driver=driver,
    )


def _sample(run: Ingestion, folder: Path, kind: str) -> Sample:
    driver = psutil.Process(run.process.pid)
    family = [driver, *driver.children(recursive=True)]
    # Below it are what the JVM starts, which bears its name for a moment.
    virtual_machines = [child.pid for child in driver.children() if child.name() == "java"]
    log = folder / "checkpoint" / kind
    return Sample(
        resident_mebibytes=total(family, lambda process: process.memory_info().rss) / 2**20,
        heap_mebibytes=sum(map(heap_after_collection, virtual_machines)),
        connections=total(family, lambda process: len(process.net_connections())),
        files=total(family, lambda process: process.num_fds()),
        log_objects=sum(1 for name in ("batches", "commits", "epochs") for _ in (log / name).iterdir()),
    )


def total(family: Iterable[psutil.Process], figure: Callable[[psutil.Process], int]) -> int:
    """The sum over those that are still there."""
    found = 0
    for process in family:
        with suppress(psutil.NoSuchProcess):
            found += figure(process)
    return found


def _table(kind: str, found: Soak) -> str:
    head = f"{kind}: {found.records_per_second} records/s, triggers of {found.interval}, {found.throttled} throttled"
    return "\n".join([head, _COLUMNS, *map(_row, found.stretches)])


_COLUMNS = (
    f"{'to batch':>9}{'work p50/p99 s':>16}{'fresh p50/p99 s':>17}{'memory MiB':>12}{'heap MiB':>10}"
    f"{'connections':>13}{'files':>7}{'log objects':>13}"
)


def _row(one: Stretch) -> str:
    work = f"{one.p50_seconds:.2f}/{one.p99_seconds:.2f}"
    fresh = f"{one.fresh_p50_seconds:.2f}/{one.fresh_p99_seconds:.2f}"
    return (
        f"{one.batches:>9}{work:>16}{fresh:>17}{one.driver.resident_mebibytes:>12.0f}"
        f"{one.driver.heap_mebibytes:>10.0f}{one.driver.connections:>13}{one.driver.files:>7}"
        f"{one.driver.log_objects:>13}"
    )


def _interval(text: str) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def main() -> int:
    """Print a table for each writer, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=out_file, required=True, help="gets the figures as JSON")
    parser.add_argument("--writers", nargs="+", choices=list(WRITERS), default=["json", "mor"])
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"at least {WARM_UP + STRETCH}")
    parser.add_argument("--interval", type=_interval, default=INTERVAL, help="of the trigger")
    parser.add_argument("--rate", type=int, default=RATE, help=f"records/s, at most {MOST_RATE}")
    parser.add_argument(
        "--hudi", type=hudi_fields, default={}, metavar="YAML", help="fields of the document's hudi, as a mapping"
    )
    arguments = parser.parse_args()
    if arguments.batches < WARM_UP + STRETCH:
        parser.error(f"--batches: {arguments.batches} are too few, {WARM_UP} warm up and {STRETCH} count")
    if not 0 < arguments.rate <= MOST_RATE:
        parser.error(
            f"--rate: {arguments.rate} is not between 1 and {MOST_RATE}, what {SHARDS} shards take all the time"
        )
    require_hudi(parser, arguments.hudi, arguments.writers)
    results: dict[str, Soak] = {}
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:
        telling = Telling(len(arguments.writers))
        for kind in arguments.writers:
            with telling.measuring(f"{kind}, {arguments.batches} batches"):
                hudi = {} if kind == "json" else arguments.hudi
                folder = Path(scratch) / kind
                results[kind] = soak(kind, folder, arguments.batches, arguments.interval, arguments.rate, hudi)
    print("\n\n".join(_table(kind, found) for kind, found in results.items()))
    figures = {"measured_at": now(), "writers": {kind: asdict(found) for kind, found in results.items()}}
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
