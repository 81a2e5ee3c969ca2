"""How a run is asked to end: by a signal, by a drain request, or by an error in another thread."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_WAKES = "LAKESTREAM_WAKES"
"""Environment variable of a program that begins anew: the socket with the signals that came before."""


class StopSignal:
    """Set once, seen by every thread, and waited for instead of sleeping."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._is_asked = False
        self._has_signal: Callable[[], bool] = lambda: False
        self._leave: Callable[[], None] = lambda: None

    @property
    def is_asked(self) -> bool:
        """Whether somebody wants the run to end; else, if it is set, an error does."""
        return self._is_asked or self._has_signal()

    def set(self) -> None:
        """Ask the run to end after the batch in hand."""
        self._is_asked = True
        self._event.set()

    def listen(self, has_signal: Callable[[], bool], leave: Callable[[], None] = lambda: None) -> None:
        """Ask this too whether somebody wants the run to end; `leave` leaves what it goes by to the next program."""
        self._has_signal, self._leave = has_signal, leave

    def hand_over(self) -> None:
        """Another program takes the place of this one in its process, at once: let it know of signals that come until
        then, for whose handler there is no time any more."""
        self._leave()

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

    Nothing depends on the first: a kill at any instant loses and doubles nothing. Python runs a handler when the main
    thread is back from what it calls, as a request to a storage that is away; `is_asked` tells before.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)
        # By a thread of its own: this one may be within a write to the log, which takes no other one meanwhile.
        said = "%s: ending after the batch in hand", signal.Signals(number).name
        threading.Thread(target=logger.info, args=said).start()

    for number in _left():
        logger.info("%s came as this program began anew: ending", signal.Signals(number).name)
        stop.set()
    received, sent = socket.socketpair()
    for end in (received, sent):
        end.setblocking(False)
    with received, sent, _handled(on_signal):
        wakes = signal.set_wakeup_fd(sent.fileno())
        stop.listen(lambda: not _arrived(received).isdisjoint(_SIGNALS), lambda: _leave(received))
        try:
            yield
        finally:
            stop.listen(lambda: False)
            signal.set_wakeup_fd(wakes)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While entered, a signal ends the process at once, whatever holds the main thread up."""
    with _handled(signal.SIG_DFL):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _leave(wakes: socket.socket) -> None:
    wakes.set_inheritable(True)
    os.environ[_WAKES] = str(wakes.fileno())


def _left() -> set[int]:
    """The signals that came for the program before this one in its process, when that made room."""
    if (left := os.environ.pop(_WAKES, "")) == "":
        return set()
    with socket.socket(fileno=int(left)) as wakes:
        return _arrived(wakes).intersection(_SIGNALS)


def _arrived(wakes: socket.socket) -> set[int]:
    """The signals that were told of by this socket."""
    try:
        return {*wakes.recv(1024, socket.MSG_PEEK)}
    except BlockingIOError:
        return set()
