"""Nothing of a benchmark outlives it, whatever ends it. Real processes, since signals are what is tested."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from lab.family import alive
from lakestream_bench import kinesis_servers, producer
from lakestream_bench._kinesis_contenders import UnavailableError, running

DEADLINE = 120.0
ALL = ("lakestream_bench", "kinesis_servers")
ONE = ("lakestream_bench.kinesis_servers", "--out", "figures.json", "--seconds", "600")
"""Starts a server, two producers and two consumers; without a JVM."""
SIMULATION = ("lakestream.main", "simulate", "--seeds", "20", "--processes", "4")

# As a benchmark that runs a driver: a child that ends only when it is killed, with a child of its own.
DEAF = """
import subprocess, sys, time
from lakestream_bench._processes import ended, no_process_left
child = "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
child += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
child += "print('up', flush=True); time.sleep(600)"
with no_process_left(), ended(subprocess.Popen([sys.executable, "-c", child])):
    time.sleep(600)
"""
# As under `nohup`.
IN_THE_BACKGROUND = """
import signal, time
from lakestream_bench._processes import no_process_left
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with no_process_left():
    print("up", flush=True)
    time.sleep(600)
"""

BEHIND_A_PROXY = """
import os
from urllib.request import proxy_bypass
from lakestream_bench._processes import no_process_left
os.environ |= {"HTTP_PROXY": "http://proxy.internal:3128", "NO_PROXY": "example.com"}
with no_process_left():
    print(*map(proxy_bypass, ("127.0.0.1", "example.com", "example.net")), flush=True)
"""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen((sys.executable, *arguments), cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("program", "processes", "number"),
    [
        (ONE, 7, signal.SIGTERM),
        (ALL, 9, signal.SIGINT),
        (ALL, 9, signal.SIGKILL),
        (SIMULATION, 4, signal.SIGTERM),
        (SIMULATION, 4, signal.SIGKILL),
    ],
    ids=["one-SIGTERM", "all-SIGINT", "all-SIGKILL", "simulation-SIGTERM", "simulation-SIGKILL"],
)
def test_an_ended_benchmark_leaves_no_process(
    tmp_path: Path, program: tuple[str, ...], processes: int, number: signal.Signals
) -> None:
    with started(tmp_path, "-m", *program) as bench:
        until(lambda: len(family(bench)) >= processes)
        left = family(bench)
        bench.send_signal(number)
        bench.wait(DEADLINE)
        if number is signal.SIGKILL:
            until(lambda: not alive(left))
        assert bench.returncode == (-number if number is signal.SIGKILL else 128 + number)
        assert alive(left) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_deaf_child_is_killed_with_what_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "-c", DEAF) as bench:
        assert bench.stdout is not None
        assert bench.stdout.readline() == "up\n"
        left = family(bench)
        assert len(left) == 3  # the reaper, the child, its child
        bench.send_signal(number)
        bench.wait(DEADLINE)
        until(lambda: not alive(left))


def test_a_signal_that_is_ignored_on_purpose_ends_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "-c", IN_THE_BACKGROUND) as bench:
        assert bench.stdout is not None
        assert bench.stdout.readline() == "up\n"
        # Of two that are there, the handler of the lower one runs first.
        bench.send_signal(signal.SIGHUP)
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(DEADLINE) == 128 + signal.SIGTERM


def test_no_proxy_is_asked_for_a_benchmarks_own_servers(tmp_path: Path) -> None:
    with started(tmp_path, "-c", BEHIND_A_PROXY) as bench:
        assert bench.stdout is not None
        assert bench.stdout.readline() == "True True False\n"


def test_a_server_that_ends_under_its_clients_is_left_out_and_not_the_end_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def fleeting(name: str, folder: Path) -> Iterator[int]:
        with running(name, folder) as port:
            (server,) = psutil.Process().children()
            # Producers and consumers are started when there is a stream.
            ending = threading.Thread(
                target=lambda: (until(lambda: bool(multiprocessing.active_children())), server.kill())
            )
            ending.start()
            yield port
            ending.join()

    monkeypatch.setattr(kinesis_servers, "running", fleeting)
    with pytest.raises(UnavailableError, match="lakestream broke off"):
        kinesis_servers.measure("lakestream", 1)
    assert multiprocessing.active_children() == []


def test_why_a_producer_does_not_run_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        producer.measure("nobody", 1, 1)
    assert "invalid choice: 'nobody'" in capfd.readouterr().err
