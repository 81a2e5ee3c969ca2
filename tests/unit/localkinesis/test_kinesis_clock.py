"""Clocks that only go forward."""

from __future__ import annotations

import time

import pytest

from lakestream_localkinesis.core.clock import DrivenClock, SystemClock
from lakestream_localkinesis.errors import SettingsError


class Base:
    def __init__(self) -> None:
        self.now = 100

    def now_ms(self) -> int:
        return self.now


def test_a_driven_clock_follows_its_base_at_an_offset():
    base = Base()
    clock = DrivenClock(base)
    clock.advance(50)
    base.now += 5

    assert clock.now_ms() == 155


def test_it_stands_still_and_runs_on_from_there():
    base = Base()
    clock = DrivenClock(base)
    clock.freeze()
    base.now += 1000
    assert clock.now_ms() == 100
    clock.advance(1)
    clock.set(150)
    assert clock.now_ms() == 150
    clock.resume()
    base.now += 7
    assert clock.now_ms() == 157


def test_it_does_not_go_back():
    clock = DrivenClock(Base())
    for refused in (lambda: clock.advance(-1), lambda: clock.set(99)):
        with pytest.raises(SettingsError, match="only goes forward"):
            refused()


def test_the_system_clock_holds_still_when_the_machine_steps_back(monkeypatch: pytest.MonkeyPatch):
    clock = SystemClock()
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    assert clock.now_ms() == 5
    monkeypatch.setattr(time, "time_ns", lambda: 3_000_000)
    assert clock.now_ms() == 5


def test_the_system_clock_goes_on_where_it_was_when_the_machine_is_set_back(monkeypatch: pytest.MonkeyPatch):
    """To stand still for minutes would be to refuse all requests once the rates of a second are used up."""

    def told_at(seconds: float) -> int:
        monkeypatch.setattr(time, "time_ns", lambda: round(seconds * 1e9))
        return clock.now_ms()

    clock = SystemClock()
    assert told_at(1000) == 1_000_000
    assert told_at(280) == 1_000_000
    assert told_at(283) == 1_003_000
    # Back still further, and then right again.
    assert told_at(100) == 1_003_000
    assert told_at(101) == 1_004_000
    assert told_at(1003.5) == 1_004_000
    assert told_at(1005) == 1_005_000
