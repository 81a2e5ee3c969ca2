"""A driver: `lakestream ingest` as a process of its own, as users start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.processes import MARK, Part, family, part_of, send

FENCED = 4
"""The documented status of a driver whose place another one has taken (`docs/operating.md`)."""
FAILED, STORAGE = 1, 6
"""The documented statuses of one that may be started again; the second one's storage did not answer."""
TAIL_LINES = 60
SERVICE_FAILED = " failed; ingestion goes on: "


def crowding() -> float:
    """How much longer things take now, with more that wants to run than there are processors; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True)
class Launch:
    """How drivers of a scenario are started."""

    document: Path
    writer: str
    environment: Mapping[str, str]
    options: tuple[str, ...]
    folder: Path
    """For logs and progress."""


class Driver:
    """One running driver."""

    def __init__(self, launch: Launch, number: int, *, crash_at: str | None = None, drain: bool = False) -> None:
        self.name = f"driver-{number:02d}"
        self.log = launch.folder / f"{self.name}.log"
        self.hurt = False
        """Whether something was done to it that it may end of."""
        self.crosses = False
        """Whether its predecessor lives when it starts: a plan or commit of that one may land in the log after it."""
        self._progress = launch.folder / f"{self.name}.progress.jsonl"
        self._mark = f"{os.getpid()}/{launch.folder}/{self.name}"
        self._launch = launch
        environment = {**launch.environment, MARK: self._mark}
        if crash_at is not None:
            environment["LAKESTREAM_CRASH_AT"] = crash_at
        command = [
            *("sh", "-c", 'LAKESTREAM_CRASH_PID=$$ exec "$@"', "sh"),
            *(sys.executable, "-m", "lakestream.main", "ingest", *launch.options),
            *("--file", str(launch.document), "--writer", launch.writer, "--progress-file", str(self._progress)),
            *(["--until-caught-up"] if drain else []),
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    @property
    def status(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self.process.poll()

    @property
    def batches(self) -> int:
        """That it says it has committed."""
        return self._progress.read_bytes().count(b"\n") if self._progress.exists() else 0

    def commits(self) -> list[Mapping[str, Any]]:
        """What it says of each of these."""
        # The last line may be cut.
        *lines, _ = self._progress.read_text().split("\n") if self._progress.exists() else [""]
        return [json.loads(line) for line in lines]

    def has_logged(self, text: str) -> bool:
        return text.encode() in self.log.read_bytes()

    def wait(self, seconds: float) -> int | None:
        """Exit status, or None if it has not ended by then."""
        self.until(lambda: False, seconds)
        return self.status

    def until(self, condition: Callable[[], object], seconds: float) -> bool:
        """Wait until something holds; False if the driver ended, or the time did, before that.

        Args:
            condition: is looked at often.
            seconds: on a machine of its own; where others want its processors as well, longer.
        """
        deadline = time.monotonic() + seconds * crowding()
        while not condition():
            if self.status is not None or time.monotonic() > deadline:
                return bool(condition())
            time.sleep(0.02)
        return True

    def signal(self, part: Part, number: signal.Signals) -> int:
        """Send a signal to some of its processes; returns to how many."""
        return send(part_of(self._mark, self.process.pid, part), number)

    def kill(self, part: Part = Part.ALL) -> int:
        self.hurt = True
        return self.signal(part, signal.SIGKILL)

    def freeze(self) -> None:
        # Twice: a process may have been started by one that was not stopped yet.
        for _ in range(2):
            self.signal(Part.ALL, signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(Part.ALL, signal.SIGCONT)

    def end(self) -> None:
        """Kill all that is left."""
        while self.kill():
            time.sleep(0.02)
        self.process.wait()

    def left(self, seconds: float) -> list[str]:
        """Of an ended driver, the processes that are still there after so many seconds."""
        deadline = time.monotonic() + seconds * crowding()
        while (alive := family(self._mark)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [str(process) for process in alive]

    def last_word(self) -> str:
        """The last line of its log."""
        return (self.log.read_text(errors="replace").splitlines() or [""])[-1]

    def failed_services(self) -> list[str]:
        """What it has logged of table services that failed; not of those that wait for the store's clock, as told."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if SERVICE_FAILED in line and "by the clock of its store" not in line]

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"--- the last lines of {self.log}", *lines])
