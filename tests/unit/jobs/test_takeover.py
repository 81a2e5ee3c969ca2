"""When a driver that has taken over may begin, by a driven clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lakestream.errors import FencedError
from lakestream.stopping import StopSignal
from lakestream.takeover import await_predecessors


@dataclass
class Log:
    unsafe_for: float
    is_fenced: bool = False

    def seconds_until_safe(self) -> float:
        return self.unsafe_for

    def check_fence(self) -> None:
        if self.is_fenced:
            raise FencedError("epoch 3 has taken over")


@dataclass
class Stop(StopSignal):
    """Waiting takes no time, and may end by a stop."""

    comes: bool = False
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.comes:
            self.set()


def test_it_waits_until_no_predecessor_can_be_writing() -> None:
    stop = Stop()
    assert await_predecessors(Log(12.0), stop)
    assert stop.waits == [12.0]


def test_a_stop_ends_the_wait_and_nothing_is_begun() -> None:
    assert not await_predecessors(Log(12.0, is_fenced=True), Stop(comes=True))


def test_who_was_replaced_while_it_waited_begins_nothing() -> None:
    with pytest.raises(FencedError):
        await_predecessors(Log(12.0, is_fenced=True), Stop())
