"""The last line of defence: ends the processes of a run when the process that started them has been killed.

`python -m lakestream_demo.reaper TOKEN` holds the reading end of a pipe. The run (the demo, a benchmark) holds the
other end and never writes to it, so the pipe ends when the run does, whatever it died of. Every process of a run
carries the run's token in its environment and hands it down to its own children (a JVM, Python workers), so nothing
need be registered and there is no instant at which a child is not yet known.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

TOKEN_VARIABLE = "LAKESTREAM_RUN"
GRACE_SECONDS = 5.0  # a Spark driver needs some seconds to end the batch in hand
POLL_SECONDS = 0.05


class Reaper:
    """A run's token and its reaper. A context manager: on leaving it, no process with the token is left."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "lakestream_demo.reaper", self.token),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # It belongs to no run: that of a run within a run has to outlive the inner one.
            env={name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE},
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sweep(self.token, grace=0.0)
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def processes_of(token: str) -> list[psutil.Process]:
    """The living processes (zombies aside) that carry `token`, but for the calling one."""
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and (process.info["environ"] or {}).get(TOKEN_VARIABLE) == token
        and process.pid != os.getpid()
    ]


def sweep(token: str, grace: float) -> int:
    """End whatever is left of a run: SIGTERM, then SIGKILL after `grace` seconds.

    Returns:
        How many processes there were.
    """
    first = processes_of(token)
    _signal_all(first, signal.SIGTERM)
    deadline = time.monotonic() + grace
    left = first
    while left and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        left = processes_of(token)
    # Once more after each kill: a process may have started another one just before it died.
    while left:
        _signal_all(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
        left = processes_of(token)
    return len(first)


def _signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    sweep(sys.argv[1], GRACE_SECONDS)


if __name__ == "__main__":
    main()
