"""End to end beside what people use today: the same events from the same stream, the same Spark, jars and cores.

    ours          `lakestream ingest`, one merge-on-read Hudi table
    loop          boto3's get_records by hand, `createDataFrame`, append by Hudi's DataSource at its defaults
    files         Structured Streaming to Hudi's DataSource at its defaults, from files that something else has written
    files-tuned   the same with the options that our sink sets
    connector     as files-tuned, through the one Kinesis connector for Spark 3 that can be had

Each works off the same backlog, alone, in batches of one size. The first ones, in which the JVM compiles, do not count.
What writes the files of the detour costs nothing here, and neither does the wait for them. CPU seconds are those of all
of a contender's processes; wall time on a machine that does something else says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import psutil

from lakestream_bench._ingestion import SHARDS, STREAM, Orders, Trigger, ingest, now
from lakestream_bench._processes import ended, no_process_left
from lakestream_bench._rival import FROM_FILES, NAMES, PER_FILE, in_batches, records
from lakestream_bench._telling import Telling
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

BATCH = 50_000
BATCHES = 6
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


def figure(contender: str, marks: Sequence[Mark], warm_up: int) -> Figure:
    """Of the batches behind the one with which so many events are visible."""
    counted = [mark for mark in marks if mark.events >= warm_up]
    first, last = counted[0], counted[-1]
    events, seconds = last.events - first.events, last.at - first.at
    cpu = (last.cpu - first.cpu) / events
    return Figure(contender, events / seconds, seconds / (len(counted) - 1), cpu * 1e6)


def ours(server: LocalKinesis, folder: Path, batch: int, events: int) -> list[Mark]:
    with ingest(server, folder, "mor", Trigger("1s", batch), until_caught_up=True) as run:
        marks: list[Mark] = []
        driver, never = psutil.Process(run.process.pid), threading.Event()
        while run.process.poll() is None and _events(marks) < events:
            done = sum(one.records for one in run.batches())
            if done > _events(marks):
                marks.append(Mark(monotonic(), done, family_cpu(driver)))
            never.wait(0.1)
        _require(marks, events, run.log)
    return marks


def write_files(server: LocalKinesis, folder: Path) -> None:
    """The stream's events as files of lines, `PER_FILE` each."""
    folder.mkdir(parents=True)
    for number, datas in enumerate(in_batches(records(server.client(), STREAM), PER_FILE)):
        (folder / f"{number:06d}.json").write_bytes(b"\n".join(datas) + b"\n")


def rival(name: str, server: LocalKinesis, folder: Path, batch: int, events: int) -> list[Mark]:
    folder.mkdir(parents=True)
    if name in FROM_FILES:
        write_files(server, folder / "events")
    log = folder / "log"
    command = [sys.executable, "-m", "lakestream_bench._rival", name, "--stream", STREAM]
    command += ["--endpoint", server.endpoint, "--folder", str(folder), "--batch", str(batch)]
    command += ["--cores", str(os.cpu_count())]
    environment = {**os.environ, **server.environment()}
    marks: list[Mark] = []
    with log.open("wb") as errors, ExitStack() as stack:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        stack.enter_context(ended(process))
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"{"):
                done = _events(marks) + json.loads(line)["events"]
                marks.append(Mark(monotonic(), done, family_cpu(psutil.Process(process.pid))))
            if _events(marks) >= events:
                break
        _require(marks, events, log)
    return marks


def _events(marks: Sequence[Mark]) -> int:
    return marks[-1].events if marks else 0


def _require(marks: Sequence[Mark], events: int, log: Path) -> None:
    if (done := _events(marks)) < events:
        raise RuntimeError(f"{done} events of {events}; the log ends with:\n{log.read_text()[-3000:]}")


def measure(name: str, server: LocalKinesis, folder: Path, batch: int, batches: int) -> Figure:
    """One contender on the whole backlog.

    Raises:
        RuntimeError: it did not get to the end.
    """
    events = (WARM_UP + batches) * batch
    marks = ours(server, folder, batch, events) if name == "ours" else rival(name, server, folder, batch, events)
    return figure(name, marks, WARM_UP * batch)


def main() -> int:
    """Print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="gets the figures as JSON")
    parser.add_argument("--contenders", nargs="+", choices=["ours", *NAMES], default=["ours", *NAMES])
    parser.add_argument("--batch", type=int, default=BATCH, help=f"events of a batch, a multiple of {PER_FILE}")
    parser.add_argument("--batches", type=int, default=BATCHES, help="that count")
    chosen = parser.parse_args()
    figures, refused = [], {}
    with local_kinesis(limits=Limits.none()) as server, tempfile.TemporaryDirectory(prefix="lakestream-bench-") as lake:
        server.create_stream(STREAM, shards=SHARDS)
        server.clock.freeze()
        Orders(server).fill((WARM_UP + chosen.batches) * chosen.batch)
        server.clock.resume()
        telling = Telling(len(chosen.contenders))
        for name in chosen.contenders:
            with telling.measuring(name):
                try:
                    figures.append(measure(name, server, Path(lake) / name, chosen.batch, chosen.batches))
                except RuntimeError as error:
                    refused[name] = str(error)
    print(f"{chosen.batches} batches of {chosen.batch:,} events, {os.cpu_count()} cores, merge on read")
    print(f"{'contender':14}{'events/s':>10}{'s per batch':>13}{'CPU µs per event':>18}")
    for found in figures:
        print(
            f"{found.contender:14}{found.events_per_second:>10,.0f}{found.batch_seconds:>13.2f}"
            f"{found.cpu_microseconds:>18.1f}"
        )
    for name, why in refused.items():
        print(f"\n{name} did not run: {why}")
    result = {
        "measured_at": now(),
        "cores": os.cpu_count(),
        "figures": [asdict(f) for f in figures],
        "refused": refused,
    }
    chosen.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
