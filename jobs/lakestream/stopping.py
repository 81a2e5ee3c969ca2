"""How a run is asked to end: by a signal, by a drain request, or by an error in another thread."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)


class StopSignal:
    """Set once, seen by every thread, and waited for instead of sleeping."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.is_asked = False
        """Whether somebody wants the run to end; else, if it is set, an error does."""

    def set(self) -> None:
        """Ask the run to end after the batch in hand."""
        self.is_asked = True
        self._event.set()

    def fail(self) -> None:
        """End the run's other threads too, since one has failed."""
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait that long, or until the stop; not at all if `seconds` is not positive."""
        if seconds > 0:
            self._event.wait(seconds)


@contextmanager
def stop_on_signals(stop: StopSignal) -> Iterator[None]:
    """While entered, the first SIGTERM or SIGINT asks for a stop; a second one ends the process at once.

    Nothing depends on the first: a kill at any instant loses and doubles nothing.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        logger.info("%s: ending after the batch in hand", signal.Signals(number).name)
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
