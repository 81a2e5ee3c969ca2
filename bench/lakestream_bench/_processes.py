"""The processes that a benchmark starts: they end with it, whatever ends it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lakestream.spark.session import kill_jvm
from lakestream_demo.interrupt import SIGNALS, heeded
from lakestream_demo.loopback import without_proxy
from lakestream_demo.reaper import TOKEN_VARIABLE, Reaper

STOP_SECONDS = 60.0
"""A driver ends the batch in hand first, which may be one of 100,000 records on a busy machine."""
INTERRUPTED_SECONDS = 4.0
"""The same when the benchmark has failed or is to end: nobody reads its figures any more."""

_came: list[int] = []
"""The signal that ends this program, once there was one."""


@contextmanager
def no_process_left() -> Iterator[None]:
    """Around all that a program does: what it has started by then has ended when the block has, and if it is killed.

    Its servers on this machine are asked through no proxy.
    Ctrl-C, SIGTERM and SIGHUP become an exit, so that what is under way is ended in order, unless they are ignored.
    """
    for number in heeded():
        signal.signal(number, _end)
    os.environ |= without_proxy(os.environ)
    with Reaper() as reaper:
        os.environ[TOKEN_VARIABLE] = reaper.token
        try:
            yield
        except Exception:
            if is_ending():
                sys.exit(128 + _came[0])
            raise


def is_ending() -> bool:
    """Whether a signal has come: what fails from then on fails for that."""
    return bool(_came)


@contextmanager
def ended(process: subprocess.Popen[bytes], hurry: float = INTERRUPTED_SECONDS) -> Iterator[subprocess.Popen[bytes]]:
    """A process for the length of a block; at its end it is asked to end, and killed if it does not.

    Args:
        process: has been started.
        hurry: seconds that it has when the block ends with an error.
    """
    seconds = hurry
    try:
        yield process
        seconds = STOP_SECONDS
    finally:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def failure(what: str, log: Path) -> RuntimeError:
    """That a process did not do what it should have done, with the end of what it logged."""
    return RuntimeError(f"{what}; the log ends with:\n{log.read_text()[-3000:]}")


def _end(number: int, _frame: FrameType | None) -> None:
    # A second one does not disturb the ending.
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    _came.append(number)
    # Of what breaks off now.
    logging.disable()
    # PySpark, which tidies up when a call is broken off, would wait until the JVM has carried it out.
    kill_jvm()
    sys.exit(128 + number)
