"""The last line of defence: ends the demo's processes when the demo itself has been killed.

`python -m lakestream_demo.reaper TOKEN` holds the reading end of a pipe. The demo holds the other end and never
writes to it, so the pipe ends when the demo does, whatever it died of. Every process of a run carries the run's token
in its environment and hands it down to its own children (a JVM, Python workers), so nothing need be registered and
there is no instant at which a child is not yet known.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

import psutil

TOKEN_VARIABLE = "LAKESTREAM_DEMO_RUN"
GRACE_SECONDS = 5.0  # a Spark driver needs some seconds to end the batch in hand
POLL_SECONDS = 0.05


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
