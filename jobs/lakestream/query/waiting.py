"""Waiting for what is deaf to Ctrl-C and may take for ever: it goes on in a thread of its own when it was given up."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TypeVar

Given = TypeVar("Given")

SECONDS_TO_LOOK = 0.1
"""Between two looks whether somebody has pressed Ctrl-C."""


class _CtrlC:
    """Whether it was pressed, which is one thing for the whole process, as the signal is."""

    pressed = False


def begun(call: Callable[[], Given]) -> Future[Given]:
    """What a call will give, of which nothing stops the process from ending."""
    found: Future[Given] = Future()

    def execute() -> None:
        try:
            found.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised by who waits for it
            found.set_exception(error)

    Thread(target=execute, daemon=True).start()
    return found


def awaited(call: Callable[[], Given], seconds: float, look: Callable[[], None]) -> Given:
    """What a call gives.

    Args:
        call: to carry out; it raises what it raises.
        seconds: after which a look is taken, again and again.
        look: raises what the wait is to end with.

    Raises:
        KeyboardInterrupt: somebody has pressed Ctrl-C, also where another thread than the main one waits.
    """
    found, looked = begun(call), time.monotonic()
    while not wait([found], SECONDS_TO_LOOK).done:
        if _CtrlC.pressed:
            raise KeyboardInterrupt
        if time.monotonic() - looked > seconds:
            look()
            looked = time.monotonic()
    return found.result()


@contextmanager
def ctrl_c() -> Iterator[Callable[[], bool]]:
    """Says whether somebody has pressed Ctrl-C meanwhile. Python's own handler raises wherever the program is; in a
    callback of the garbage collector nobody hears of it."""

    def press(_number: int, _frame: object) -> None:
        _CtrlC.pressed = True

    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or current_thread() is not main_thread():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: _CtrlC.pressed
    finally:
        _CtrlC.pressed = False
        signal.signal(signal.SIGINT, before)
