"""Nothing of a run outlives it, whatever ends it. Real processes, since signals and sessions are what is tested."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from lab.family import alive
from lakestream_demo.errors import ChildFailedError, InterruptedDemoError
from lakestream_demo.interrupt import Interrupt
from lakestream_demo.processes import Child, Command, Supervisor

DEADLINE = 120.0

# A child as Spark is one: it has a child of its own, in a process group of its own.
FAMILY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; print('grandchild', flush=True); time.sleep(600)"],
                 process_group=0)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
# Not by print: a handler that runs within it may not print, too.
PATIENT = """
import os, signal, sys, time
def stop(*_):
    print("draining", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
os.write(1, b"ready\\n")
time.sleep(600)
"""


def command(name: str, code: str) -> Command:
    return Command(name, (sys.executable, "-c", code), {}, advice=f"Look after {name}.")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def says(child: Child, text: str) -> Callable[[], bool]:
    return lambda: text in child.log.read_text()


def family(child: Child) -> list[psutil.Process]:
    process = psutil.Process(child.process.pid)
    return [process, *process.children(recursive=True)]


def test_leaving_ends_children_and_grandchildren(tmp_path: Path) -> None:
    with Supervisor(tmp_path, Interrupt()) as supervisor:
        child = supervisor.start(command("family", FAMILY))
        until(says(child, "grandchild"))
        processes = family(child)
        assert len(processes) == 2
    assert alive(processes) == []


def test_a_child_that_ends_early_is_shown_with_its_last_words(tmp_path: Path) -> None:
    with Supervisor(tmp_path, Interrupt()) as supervisor:
        child = supervisor.start(command("writer", "print('no such stream'); raise SystemExit(3)"))
        until(lambda: child.status is not None)
        with pytest.raises(ChildFailedError, match="writer ended with status 3") as caught:
            supervisor.check([child])
    assert caught.value.tail == ("no such stream",)
    assert caught.value.advice == "Look after writer."


def test_a_child_has_nothing_of_the_shell_but_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    code = "import os; print(sorted(name for name in os.environ if name.startswith('AWS_')))"
    with Supervisor(tmp_path, Interrupt()) as supervisor:
        child = supervisor.start(Command("child", (sys.executable, "-c", code), {"AWS_REGION": "eu-west-1"}, ""))
        until(lambda: child.status is not None)
    assert child.log.read_text() == "['AWS_REGION']\n"


def test_leaving_lets_a_child_finish_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakestream_demo.processes.STOP_SECONDS", DEADLINE)
    with Supervisor(tmp_path, Interrupt()) as supervisor:
        child = supervisor.start(command("patient", PATIENT))
        until(says(child, "ready"))
    assert child.status == 0
    assert "draining" in child.log.read_text()


def test_a_child_that_fails_when_asked_to_stop_is_an_error(tmp_path: Path) -> None:
    with Supervisor(tmp_path, Interrupt()) as supervisor:
        stopped = supervisor.start(command("stopped", "import time; time.sleep(600)"))
        broken = supervisor.start(command("broken", "raise SystemExit(4)"))
        stopped.terminate()
        until(lambda: stopped.status is not None and broken.status is not None)
        supervisor.finish(stopped)
        with pytest.raises(ChildFailedError, match="broken ended with status 4"):
            supervisor.finish(broken)


def test_a_second_request_does_not_wait_for_a_deaf_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakestream_demo.processes.STOP_SECONDS", math.inf)
    interrupt = Interrupt()
    with Supervisor(tmp_path, interrupt) as supervisor:
        child = supervisor.start(command("deaf", STUBBORN))
        until(says(child, "deaf"))
        interrupt.request(signal.SIGINT)
        interrupt.request(signal.SIGINT)
    assert child.status == -signal.SIGKILL


def test_a_signal_is_noticed_at_the_next_wait(tmp_path: Path) -> None:
    interrupt = Interrupt()
    with interrupt.installed():
        interrupt.pause(0.0)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(InterruptedDemoError) as caught:
            interrupt.pause(DEADLINE)
        timer.join()
    assert caught.value.signal_number == signal.SIGTERM


ORCHESTRATOR = """
import sys, time
from pathlib import Path
from lakestream_demo.interrupt import Interrupt
from lakestream_demo.processes import Command, Supervisor
with Supervisor(Path(sys.argv[1]), Interrupt()) as supervisor:
    for name, code in (("family", sys.argv[2]), ("deaf", sys.argv[3])):
        child = supervisor.start(Command(name, (sys.executable, "-c", code), {}, ""))
    time.sleep(600)
"""


def test_children_die_with_an_orchestrator_that_is_killed(tmp_path: Path) -> None:
    orchestrator = subprocess.Popen([sys.executable, "-c", ORCHESTRATOR, str(tmp_path), FAMILY, STUBBORN])
    try:
        logs = (tmp_path / "family.log", tmp_path / "deaf.log")
        until(lambda: all(log.exists() and log.read_text() for log in logs))
        processes = psutil.Process(orchestrator.pid).children(recursive=True)
        # The reaper, the deaf child, the family of two.
        assert len(processes) == 4
    finally:
        orchestrator.kill()
        orchestrator.wait()
    until(lambda: alive(processes) == [])
