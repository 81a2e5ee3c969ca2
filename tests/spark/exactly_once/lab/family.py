"""The processes that a driver starts: a JVM and its workers, which leave its process group and outlive it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_PAUSE = 0.05
_EXITING = 4
"""The kernel's PF_EXITING."""


class Family:
    """What was seen of a process's descendants; once it is dead, they are nobody's children."""

    def __init__(self, parent: subprocess.Popen[bytes]) -> None:
        self._parent = parent
        self._members: dict[int, psutil.Process] = {}

    @property
    def members(self) -> list[psutil.Process]:
        return list(self._members.values())

    def meet(self) -> None:
        """Look who is there. The number of a parent that was waited for may by now be another process's."""
        if self._parent.poll() is not None:
            return
        with suppress(psutil.NoSuchProcess):  # another thread may have waited for it just now
            found = psutil.Process(self._parent.pid).children(recursive=True)
            self._members |= {process.pid: process for process in found}

    def outlast(self, seconds: float) -> list[psutil.Process]:
        """Wait until all have ended; returns those that have not, and forgets the others."""
        left = outlast(self.members, seconds)
        self._members = {process.pid: process for process in left}
        return left


def outlast(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended; returns those that have not."""
    deadline = time.monotonic() + seconds
    # Not psutil's wait_procs, which fails where a thread has the number of a dead process by now.
    while (left := alive(processes)) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    return left


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that are not dead."""
    return [process for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    """Whether it is not dead: one that has ended stays until whoever inherited it has asked for its status."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def is_killed(process: psutil.Process) -> bool:
    """Whether SIGKILL has been sent to it, or it has ended: from then on it runs no code of its own. Linux tells."""
    if not _runs(process):
        return True
    try:
        status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
        flags = Path(f"/proc/{process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[6]
    except OSError:
        return not _runs(process)
    pending = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:")))
    return bool(int(flags) & _EXITING) or any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending)


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to those that still run.

    psutil sends the signal without a look at whose number it is now once it has seen a process gone; and to Linux
    the number of any thread means all of its process, be it the tests' own.
    """
    for process in processes:
        if _runs(process):
            with suppress(psutil.NoSuchProcess):
                process.kill()
