"""End to end beside what people use today: the same events from the same stream, the same Spark, jars and cores.

    ours          `lakestream ingest`, one merge-on-read Hudi table
    loop          boto3's get_records by hand, `createDataFrame`, append by Hudi's DataSource at its defaults
    files         Structured Streaming to Hudi's DataSource at its defaults, from files that something else has written
    files-tuned   the same with the options that our sink sets
    connector     as files-tuned, through the one Kinesis connector for Spark 3 that can be had

Each works off the same backlog, alone, in batches of one size. The first ones, in which the JVM compiles, do not count.
What writes the files of the detour costs nothing here, and neither does the wait for them. CPU seconds are those of all
of a contender's processes; wall time on a machine that does something else says little.

Then each is put through ordeals: two reshards beside it, and five kills of all its processes, a batch apart. What is
told are the orders that are wrong in its table afterwards, by a reader that is nobody's own. The connector does not
know `availableNow`, so that it is not run unless it is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

import psutil

from lakestream_bench._contenders import CONTENDERS, started
from lakestream_bench._figures import load_figures
from lakestream_bench._ingestion import SHARDS, STREAM, Orders, now
from lakestream_bench._options import out_file, whole
from lakestream_bench._ordeals import Ordeal, Ordeals, takes, undergo
from lakestream_bench._processes import failure, no_process_left
from lakestream_bench._rival import PER_FILE
from lakestream_bench._telling import Telling
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

Result = TypeVar("Result")
BATCH = 50_000
BATCHES = 6
KILLS = 5
WARM_UP = 3
"""Batches that are not counted."""


@dataclass(frozen=True)
class Figure:
    """What one contender did."""

    contender: str
    events_per_second: float
    batch_seconds: float
    """A batch's wall time: the freshness that batches of this size can have."""
    cpu_microseconds: float
    """Of all its processes, by event."""


@dataclass(frozen=True)
class Mark:
    """A batch is visible."""

    at: float
    """Monotonic seconds."""
    events: int
    """In all batches so far."""
    cpu: float
    """Seconds of CPU of all processes so far."""


def family_cpu(process: psutil.Process) -> float:
    """Of a process and all its descendants, those that have ended included."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def figure(contender: str, marks: Sequence[Mark], warm_up: int, batch: int) -> Figure:
    """Of the batches of so many events behind the one with which so many are visible; two may be told at once."""
    counted = [mark for mark in marks if mark.events >= warm_up]
    first, last = counted[0], counted[-1]
    events, seconds = last.events - first.events, last.at - first.at
    cpu = (last.cpu - first.cpu) / events
    return Figure(contender, events / seconds, seconds * batch / events, cpu * 1e6)


def marks_of(name: str, server: LocalKinesis, folder: Path, batch: int, events: int) -> list[Mark]:
    """Follow one contender until so many events are visible, or it has ended."""
    marks: list[Mark] = []
    with started(name, server, folder, batch) as run:
        process, never = psutil.Process(run.process.pid), threading.Event()
        while run.process.poll() is None and _events(marks) < events:
            if (done := run.events()) > _events(marks):
                marks.append(Mark(monotonic(), done, family_cpu(process)))
            never.wait(0.1)
        _require(marks, events, run.log)
    return marks


def _events(marks: Sequence[Mark]) -> int:
    return marks[-1].events if marks else 0


def _require(marks: Sequence[Mark], events: int, log: Path) -> None:
    if (done := _events(marks)) < events:
        raise failure(f"{done} events of {events}", log)


def measure(name: str, server: LocalKinesis, folder: Path, batch: int, batches: int) -> Figure:
    """One contender on the whole backlog.

    Raises:
        RuntimeError: it did not get to the end.
    """
    events = (WARM_UP + batches) * batch
    return figure(name, marks_of(name, server, folder, batch, events), WARM_UP * batch, batch)


@dataclass(frozen=True)
class Rivalry:
    """All that was measured: `rivals.json`."""

    measured_at: str
    cores: int
    batch: int
    """Events of a batch in the race."""
    batches: int
    figures: tuple[Figure, ...]
    ordeals: tuple[Ordeal, ...]
    refused: Mapping[str, str]
    """Why a contender, or one in an ordeal, did not get to the end."""


def load_rivalry(file: Path) -> Rivalry | None:
    """What a run wrote, as `load_figures`."""
    return load_figures(file, Rivalry, "lakestream_bench.rivals")


class Attempts:
    """Tries one thing after the other, and keeps why one failed."""

    def __init__(self, count: int) -> None:
        self.refused: dict[str, str] = {}
        self._telling = Telling(count)

    def each(self, attempts: Mapping[str, Callable[[], Result]]) -> tuple[Result, ...]:
        """What came of those that did not fail."""
        results = []
        for name, attempt in attempts.items():
            with self._telling.measuring(name):
                try:
                    results.append(attempt())
                except RuntimeError as error:
                    self.refused[name] = str(error)
        return tuple(results)


def race(names: Sequence[str], batch: int, batches: int, attempts: Attempts, folder: Path) -> tuple[Figure, ...]:
    """The same backlog for all, one after the other."""
    with local_kinesis(limits=Limits.none()) as server:
        server.create_stream(STREAM, shards=SHARDS)
        server.clock.freeze()
        Orders(server).fill((WARM_UP + batches) * batch)
        server.clock.resume()
        return attempts.each({name: partial(measure, name, server, folder / name, batch, batches) for name in names})


def show(found: Rivalry) -> None:
    """Two tables, and what did not run."""
    print(f"{found.batches} batches of {found.batch:,} events, {found.cores} cores, merge on read")
    print(f"{'contender':14}{'events/s':>10}{'s per batch':>13}{'CPU µs per event':>18}")
    for one in found.figures:
        print(
            f"{one.contender:14}{one.events_per_second:>10,.0f}{one.batch_seconds:>13.2f}{one.cpu_microseconds:>18.1f}"
        )
    print("\norders that are wrong in the table afterwards, and events that were written again")
    print(
        f"{'contender':14}{'ordeal':>12}{'orders':>9}{'lost':>8}{'outdated':>10}{'doubled':>9}{'undeleted':>11}{'again':>9}"
    )
    for had in found.ordeals:
        print(
            f"{had.contender:14}{f'{had.count} {had.ordeal}':>12}{had.orders:>9,}{had.lost:>8,}{had.outdated:>10,}"
            f"{had.doubled:>9,}{had.undeleted:>11,}{had.read_again:>9,}"
        )
    for name, why in found.refused.items():
        print(f"\n{name} did not run: {why}")


def main() -> int:
    """Print two tables, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=out_file, required=True, help="gets the figures as JSON")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS[:-1]))
    parser.add_argument("--batch", type=int, default=BATCH, help=f"events of a batch, a multiple of {PER_FILE}")
    parser.add_argument("--batches", type=whole(), default=BATCHES, help="that count")
    parser.add_argument("--kills", type=whole(0), default=KILLS, help="of each contender; 0: no ordeals at all")
    chosen = parser.parse_args()
    if chosen.batch < PER_FILE or chosen.batch % PER_FILE:
        parser.error(f"--batch: give a multiple of {PER_FILE}, got {chosen.batch}")
    ordeals = [(name, ordeal) for ordeal in Ordeals for name in chosen.contenders if takes(name, ordeal)]
    ordeals = ordeals if chosen.kills else []
    attempts = Attempts(len(chosen.contenders) + len(ordeals))
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as lake:
        folder = Path(lake)
        figures = race(chosen.contenders, chosen.batch, chosen.batches, attempts, folder)
        left = attempts.each(
            {
                f"{name}, {ordeal}": partial(undergo, name, ordeal, chosen.kills, folder / f"{name}-{ordeal}", PER_FILE)
                for name, ordeal in ordeals
            }
        )
    found = Rivalry(now(), os.cpu_count() or 1, chosen.batch, chosen.batches, figures, left, attempts.refused)
    show(found)
    chosen.out.write_text(json.dumps(asdict(found), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
