"""The lab kills what its drivers left, and nothing else, whoever has got the numbers of the dead since."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from lab.family import Family, is_killed, kill

_MOTHER = (
    "import subprocess, sys; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
)


@pytest.fixture
def mother() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child."""
    process = subprocess.Popen([sys.executable, "-c", _MOTHER], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def _bereaved(mother: subprocess.Popen[bytes]) -> Family:
    family = Family(mother)
    family.meet()
    mother.kill()
    mother.wait()
    return family


def test_what_a_dead_process_left_is_found_and_killed(mother: subprocess.Popen[bytes]) -> None:
    family = _bereaved(mother)
    (child,) = family.members
    assert family.outlast(0.0) == [child]
    kill(family.members)
    assert family.outlast(60.0) == []
    assert family.members == []


def test_who_is_killed_counts_as_killed_at_once(mother: subprocess.Popen[bytes]) -> None:
    family = _bereaved(mother)
    (child,) = family.members
    assert not is_killed(child)
    child.terminate()
    assert family.outlast(60.0) == []
    assert is_killed(child)
    for _ in range(100):
        with subprocess.Popen(["sleep", "600"]) as another:
            assert not is_killed(psutil.Process(another.pid))
            another.kill()
            assert is_killed(psutil.Process(another.pid))


def test_the_dead_get_no_signal(mother: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    family = _bereaved(mother)
    dead = family.members
    kill(dead)
    family.outlast(60.0)
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *signal: sent.append(signal))
    kill(dead)
    assert sent == []


def test_a_thread_that_has_the_number_of_the_dead_is_nobody_to_wait_for(mother: subprocess.Popen[bytes]) -> None:
    family = _bereaved(mother)
    (dead,) = family.members
    kill([dead])
    assert family.outlast(60.0) == []
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert thread.native_id is not None
    # As it was seen when it was alive.
    reborn = psutil.Process(thread.native_id)
    reborn._ident = (thread.native_id, dead.create_time())
    family._members[reborn.pid] = reborn
    try:
        assert family.outlast(0.0) == []
    finally:
        stop.set()
        thread.join()


def test_who_has_the_number_of_the_dead_is_not_of_the_family(
    mother: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = _bereaved(mother)
    known = family.members
    monkeypatch.setattr(mother, "pid", os.getpid())
    with subprocess.Popen(["sleep", "600"]) as another:
        family.meet()
        assert psutil.Process().children() != []
        another.kill()
    assert family.members == known
    kill(known)
