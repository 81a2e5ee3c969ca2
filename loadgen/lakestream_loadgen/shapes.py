"""Load shapes: records per second as a function of the seconds since the start of a run.

Each shape also knows its integral in closed form, ``records_until``: the pacer hands out the difference
of two integrals, so that rounding and late wake-ups never add up to a drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lakestream_loadgen.errors import SettingsError


class Shape(Protocol):
    """A load over time. ``peak`` is its highest rate in records per second."""

    @property
    def peak(self) -> float: ...

    def records_per_second(self, t: float) -> float:
        """Rate at ``t`` seconds after the start."""

    def records_until(self, t: float) -> float:
        """Integral of the rate from 0 to ``t``."""


@dataclass(frozen=True)
class Constant:
    """The same rate all the time."""

    peak: float

    def records_per_second(self, t: float) -> float:
        return self.peak

    def records_until(self, t: float) -> float:
        return self.peak * t


@dataclass(frozen=True)
class Step:
    """Equal stairs up to the peak, one every ``period / stairs`` seconds; then the peak."""

    peak: float
    period: float
    stairs: int = 5

    def records_per_second(self, t: float) -> float:
        stair = min(int(t / self.period * self.stairs) + 1, self.stairs)
        return self.peak * stair / self.stairs

    def records_until(self, t: float) -> float:
        width = self.period / self.stairs
        done = min(int(t / width), self.stairs)
        height = self.peak / self.stairs
        full = height * width * done * (done + 1) / 2
        return full + (t - done * width) * height * min(done + 1, self.stairs)


@dataclass(frozen=True)
class Ramp:
    """From nothing to the peak in ``period`` seconds, then the peak."""

    peak: float
    period: float

    def records_per_second(self, t: float) -> float:
        return self.peak * min(t / self.period, 1.0)

    def records_until(self, t: float) -> float:
        rising = min(t, self.period)
        return self.peak * (rising * rising / (2 * self.period) + max(t - self.period, 0.0))


@dataclass(frozen=True)
class Sine:
    """A day compressed into ``period`` seconds, again and again: starts at night, ``floor`` × peak."""

    peak: float
    period: float
    floor: float = 0.1

    def records_per_second(self, t: float) -> float:
        wave = (1 - math.cos(2 * math.pi * t / self.period)) / 2
        return self.peak * (self.floor + (1 - self.floor) * wave)

    def records_until(self, t: float) -> float:
        turn = 2 * math.pi / self.period
        wave = t / 2 - math.sin(turn * t) / (2 * turn)
        return self.peak * (self.floor * t + (1 - self.floor) * wave)


@dataclass(frozen=True)
class Spike:
    """A fifth of the peak, and in the middle of every period, for a tenth of it, the peak."""

    peak: float
    period: float
    base: float = 0.2

    def records_per_second(self, t: float) -> float:
        phase = t % self.period / self.period
        return self.peak if 0.45 <= phase < 0.55 else self.peak * self.base

    def records_until(self, t: float) -> float:
        periods, rest = divmod(t, self.period)
        spiked = periods * self.period * 0.1 + min(max(rest - 0.45 * self.period, 0.0), 0.1 * self.period)
        return self.peak * (self.base * t + (1 - self.base) * spiked)


SHAPES: Mapping[str, Callable[[float, float], Shape]] = {
    "constant": lambda peak, period: Constant(peak),
    "step": Step,
    "ramp": Ramp,
    "sine": Sine,
    "spike": Spike,
}


def make_shape(name: str, peak: float, period: float) -> Shape:
    """Build the shape ``name`` with ``peak`` records/s and ``period`` seconds.

    Raises:
        SettingsError: unknown name, or peak or period not above 0.
    """
    if name not in SHAPES:
        raise SettingsError(f"shape: {name!r} is not one of {', '.join(SHAPES)}")
    if not peak > 0:
        raise SettingsError(f"events: {peak} records/s is not above 0")
    if not period > 0:
        raise SettingsError(f"shape period: {period} s is not above 0")
    return SHAPES[name](peak, period)


def users_at(shape: Shape, t: float, most: int, workers: int) -> int:
    """Users to run at ``t``: in proportion to the rate, in twentieths of ``most``; one for each worker, at least.

    Of a worker without users nobody would write its share of the load.
    Twentieths, because each change makes Locust start or stop users; the rate itself is kept by the pacer.
    """
    level = math.ceil(shape.records_per_second(t) / shape.peak * 20 - 1e-9)
    return max(workers, math.ceil(most * level / 20))


def next_users(users: int, there: int, spawn_rate: float, seconds: float) -> int:
    """How many to have on the way from ``there`` to ``users``, so many seconds after the last step; one at least."""
    due = spawn_rate * seconds
    step = round(due) if due >= 0.9 else 0
    return max(min(max(users, there - step), there + step), 1)
