"""The demo's child processes: started with a log each, watched, and stopped in order.

Each child leads a session of its own, so that Ctrl-C at the terminal reaches only the demo, which then stops the
children in the order in which they can be stopped.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from lakestream_demo.errors import ChildFailedError
from lakestream_demo.interrupt import Interrupt
from lakestream_demo.reaper import TOKEN_VARIABLE, Reaper

TAIL_LINES = 12
POLL_SECONDS = 0.1
# Ctrl-C does not wait for a long batch in hand: exactly-once does not depend on it.
STOP_SECONDS = 6.0


@dataclass(frozen=True)
class Command:
    """A child to be."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it: the demo's own stays behind."""
    advice: str
    """What to do when it fails: shown below the end of its log."""


class Child:
    """A started process and its log."""

    def __init__(self, command: Command, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.command = command
        self.log = log
        self.process = process

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def status(self) -> int | None:
        """Its exit status (negative: the signal that ended it), or None while it runs."""
        return self.process.poll()

    def failure(self, what: str) -> ChildFailedError:
        return ChildFailedError(f"{self.name} {what} (log: {self.log})", self.command.advice, tail(self.log))

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.status is None:
            self.process.send_signal(number)


def tail(log: Path, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """The last lines of a log."""
    with log.open(errors="replace") as text:
        return tuple(line.rstrip("\n") for line in deque(text, lines))


def describe_status(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


class Supervisor:
    """Starts, watches and stops the children. A context manager: on leaving it, nothing of the run is left.

    The last started child is stopped first.
    """

    def __init__(self, logs: Path, interrupt: Interrupt) -> None:
        self._logs = logs
        self._interrupt = interrupt
        self._reaper = Reaper()
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        self._reaper.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for child in reversed(self._children):
                child.terminate()
            self._await_end(self._children, STOP_SECONDS)
        finally:
            self._reaper.__exit__(kind, error, trace)

    def start(self, command: Command) -> Child:
        log = self._logs / f"{command.name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**command.environment, TOKEN_VARIABLE: self._reaper.token},
                start_new_session=True,
            )
        child = Child(command, log, process)
        self._children.append(child)
        return child

    def check(self, running: Sequence[Child]) -> None:
        """Make sure that children which should be running are.

        Raises:
            ChildFailedError: one has ended.
        """
        for child in running:
            if child.status is not None:
                raise child.failure(describe_status(child.status))

    def finish(self, child: Child) -> None:
        """Note that a child has ended, by itself or because it was asked to.

        Raises:
            ChildFailedError: it ended with an error.
        """
        if child.status not in (0, -signal.SIGTERM):
            assert child.status is not None
            raise child.failure(describe_status(child.status))

    def _await_end(self, children: Sequence[Child], seconds: float) -> None:
        """Wait until all have ended; kill what has not, in time or at the first sign of impatience."""
        deadline = time.monotonic() + seconds
        while any(child.status is None for child in children):
            if time.monotonic() > deadline or self._interrupt.impatient:
                for child in children:
                    child.terminate(signal.SIGKILL)
            time.sleep(POLL_SECONDS)
