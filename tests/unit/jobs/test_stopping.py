"""How a run learns that it is to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lakestream.stopping import StopSignal, ended_by_signals, stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_the_end(number: signal.Signals) -> None:
    stop, before = StopSignal(), signal.getsignal(number)
    with stop_on_signals(stop):
        assert not stop.is_asked
        signal.raise_signal(number)
        assert stop.is_set()
        assert stop.is_asked
        assert signal.getsignal(number) is signal.SIG_DFL, "a second one ends the process at once"
    assert signal.getsignal(number) is before
    assert stop.is_asked


def test_where_nothing_is_in_hand_it_ends_the_process() -> None:
    with stop_on_signals(StopSignal()):
        asks = signal.getsignal(signal.SIGTERM)
        with ended_by_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is asks


def test_an_error_does_not() -> None:
    stop = StopSignal()
    with stop_on_signals(stop):
        stop.fail()
        assert stop.is_set()
        assert not stop.is_asked


_HELD_UP = """
import ctypes, os, signal, threading, time
from lakestream.stopping import StopSignal, stop_on_signals

stop, libc, mutex, is_held = StopSignal(), ctypes.CDLL(None), ctypes.create_string_buffer(64), threading.Event()

def hold():
    libc.pthread_mutex_lock(mutex)
    is_held.set()
    time.sleep(0.2)  # the main thread waits for it by now
    os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + 2
    while not stop.is_asked and time.monotonic() < deadline:
        time.sleep(0.001)
    print(stop.is_asked)
    libc.pthread_mutex_unlock(mutex)

with stop_on_signals(stop):
    threading.Thread(target=hold).start()
    is_held.wait()
    libc.pthread_mutex_lock(mutex)
"""


def test_it_is_known_while_the_main_thread_is_held_up() -> None:
    """As by a library that waits for an answer: no handler of Python runs."""
    assert subprocess.check_output([sys.executable, "-c", _HELD_UP], timeout=60) == b"True\n"


_LOGS = """
import logging
from lakestream.stopping import StopSignal, stop_on_signals

logging.basicConfig(level=logging.INFO)
with stop_on_signals(stop := StopSignal()):
    logging.info("x" * 200_000)  # more than a pipe takes
print(stop.is_asked)
"""


def test_it_is_known_and_told_while_the_main_thread_waits_for_who_reads_its_log() -> None:
    """A handler of Python runs within the write, which takes no other one of the same thread."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _LOGS], env=buffered, stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        process.stderr.read(1)
        process.send_signal(signal.SIGTERM)
        answer, log = process.communicate(timeout=60)
    assert answer == b"True\n"
    assert log.endswith(b"SIGTERM: ending after the batch in hand\n")
