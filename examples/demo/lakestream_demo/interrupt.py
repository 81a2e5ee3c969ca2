"""Ctrl-C, SIGTERM and a closed terminal, turned into an error at places of our choosing.

A handler that raised wherever it happens to run could lose a child between its start and the note of it.
So a signal sets a flag, and the demo looks at the flag whenever it waits; it never waits in any other way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lakestream_demo.errors import InterruptedDemoError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> tuple[signal.Signals, ...]:
    """The signals, but for those that are ignored on purpose: `nohup` has SIGHUP so, and a script the SIGINT of what it
    starts in the background."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


class Interrupt:
    """Counts the requests to stop: one asks for an orderly end, a second for an immediate one."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._count = 0
        self._signal = signal.SIGINT

    def request(self, signal_number: int, _frame: FrameType | None = None) -> None:
        self._count += 1
        self._signal = signal.Signals(signal_number)
        self._requested.set()

    @property
    def impatient(self) -> bool:
        """True from the second request on."""
        return self._count > 1

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            InterruptedDemoError: a stop was requested, before or meanwhile.
        """
        if self._requested.wait(seconds):
            raise InterruptedDemoError(self._signal)

    @contextmanager
    def installed(self) -> Iterator[Interrupt]:
        """Take over the signals for the length of a `with` block."""
        before = {number: signal.signal(number, self.request) for number in heeded()}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
