"""Crash points: silent unless asked for, and then a real SIGKILL at exactly the nth time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lakestream.errors import SettingsError
from lakestream.faults import STEPS, crash_point

KILLED_SELF = (os.getpid(), signal.SIGKILL)


def reached(environ: dict[str, str], *steps: str) -> list[tuple[int, int, int]]:
    """Who is killed, and after how many steps."""
    kills: list[tuple[int, int, int]] = []
    count = 0
    reach = crash_point(environ, kill=lambda pid, number: kills.append((count, pid, number)))
    for step in steps:
        count += 1
        reach(step)
    return kills


def test_nothing_happens_by_default() -> None:
    assert reached({}, *STEPS) == []


def test_the_first_time_is_meant_if_none_is_given() -> None:
    assert reached({"LAKESTREAM_CRASH_AT": "written"}, "planned", "written", "written") == [(2, *KILLED_SELF)]


def test_the_nth_time() -> None:
    steps = ("planned", "written", "planned", "written", "planned", "written")
    assert reached({"LAKESTREAM_CRASH_AT": "written:2"}, *steps) == [(4, *KILLED_SELF)]


@pytest.mark.parametrize("target", ["4711", "-4711"])
def test_a_worker_kills_its_driver_and_then_itself(target: str) -> None:
    environ = {"LAKESTREAM_CRASH_AT": "half_read", "LAKESTREAM_CRASH_PID": target}
    assert reached(environ, "half_read") == [(1, int(target), signal.SIGKILL), (1, *KILLED_SELF)]


@pytest.mark.parametrize("wanted", ["writen", "written:0", "written:x", ""])
def test_a_crash_point_that_cannot_be_met_is_an_error(wanted: str) -> None:
    with pytest.raises(SettingsError, match="LAKESTREAM_CRASH_AT"):
        crash_point({"LAKESTREAM_CRASH_AT": wanted})


def test_a_target_that_is_no_process_is_an_error() -> None:
    with pytest.raises(SettingsError, match="LAKESTREAM_CRASH_PID"):
        crash_point({"LAKESTREAM_CRASH_AT": "written", "LAKESTREAM_CRASH_PID": "driver"})


def test_a_real_process_dies_without_cleaning_up() -> None:
    program = """
from lakestream.faults import reach
try:
    reach("planned")
    print("alive", flush=True)
    reach("written")
finally:
    print("cleaned up", flush=True)
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LAKESTREAM_CRASH_AT": "written"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL
    assert result.stdout == "alive\n"
