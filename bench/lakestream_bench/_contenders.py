"""The contenders of `rivals` as processes: started, followed by what they say to be visible, killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from lakestream_bench._ingestion import STREAM, Trigger, ingest
from lakestream_bench._processes import ended
from lakestream_bench._rival import FROM_FILES, NAMES, PER_FILE, in_batches, records
from lakestream_localkinesis.testing import LocalKinesis

OURS = "ours"
CONTENDERS = (OURS, *NAMES)


@dataclass(frozen=True)
class Contender:
    """One that runs."""

    process: subprocess.Popen[bytes]
    log: Path
    events: Callable[[], int]
    """That it has said to be visible, in this run and those before it; what it wrote twice counts twice."""

    def kill(self) -> None:
        """All of its processes at once, as when a pod's node is lost."""
        family = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        for one in family:
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family[1:], timeout=10)
        self.process.wait()


def table_of(name: str, folder: Path) -> Path:
    """Where a contender's table is."""
    return folder / ("mor" if name == OURS else "table")


@contextmanager
def started(name: str, server: LocalKinesis, folder: Path, batch: int, *, follow: bool = False) -> Iterator[Contender]:
    """Run a contender, from nothing or from what a run before left in the folder.

    Args:
        name: of CONTENDERS.
        server: has the stream.
        folder: gets all that it writes.
        batch: events.
        follow: whether it goes on at the tip of the stream, instead of ending.
    """
    if name == OURS:
        with ingest(server, folder, "mor", Trigger("1s", batch), until_caught_up=not follow) as run:
            yield Contender(run.process, run.log, lambda: sum(one.records for one in run.batches()))
        return
    folder.mkdir(parents=True, exist_ok=True)
    if name in FROM_FILES and not (folder / "events").exists():
        _write_files(server, folder / "events")
    told, log = folder / "told.jsonl", folder / "log"
    command = [sys.executable, "-m", "lakestream_bench._rival", name, "--stream", STREAM]
    command += ["--endpoint", server.endpoint, "--folder", str(folder), "--batch", str(batch)]
    command += ["--cores", str(os.cpu_count()), *(["--follow"] if follow else [])]
    environment = {**os.environ, **server.environment()}
    with told.open("ab") as output, log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        with ended(process):
            yield Contender(process, log, lambda: told_in(told.read_bytes()))


def told_in(lines: bytes) -> int:
    """Events in the batches that a rival has told of; a line that is not written to its end is none yet."""
    whole = lines[: lines.rfind(b"\n") + 1].splitlines()
    # Spark's own words may be among them.
    return sum(int(json.loads(line)["events"]) for line in whole if line.startswith(b"{"))


def _write_files(server: LocalKinesis, folder: Path) -> None:
    """The stream's events as files of lines, `PER_FILE` each: what something else would have done."""
    folder.mkdir()
    for number, datas in enumerate(in_batches(records(server.client(), STREAM), PER_FILE)):
        (folder / f"{number:06d}.json").write_bytes(b"\n".join(datas) + b"\n")
