"""Loads, streams and mishaps: what the policies are put through.

Loads are given as a share of what the stream's shards take in. Records are small and come aggregated, so that a full
shard has 1 MiB, and as many records as that holds, per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from lakestream_api import Scaling
from lakestream_bench.simulation.costs import BatchCosts
from lakestream_operator.autoscaler import BatchLimits

Series = NDArray[np.float64]

SHARD_WRITE_BYTES = 1024 * 1024
MINUTE, HOUR = 60, 3600
_NEVER_FULL = 1_000_000
_CORES = {4: 1, 64: 2}
_MORE_CORES = 4
"""Of an executor, by the stream's shards: larger streams have larger executors."""


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that happens to cluster or driver."""

    at: float
    kind: str
    """`room`: the cluster holds `value` executors from now on; `lost`: so many executors die; `died`: the driver dies;
    `revived`: a new driver is started."""
    value: int = 0


@dataclass(frozen=True, eq=False)
class Scenario:
    """One stream and its load, second by second."""

    name: str
    story: str
    """What happens, in a sentence."""
    shards: int
    """At the beginning."""
    rate: Series
    """Records per second that arrive."""
    spec: Scaling
    limits: BatchLimits
    initial: int
    """Executors at the beginning: what the load there calls for."""
    seed: int
    consumers: int = 1
    hot_share: Series | None = None
    """Share of all records that the fullest shard gets; None: all shards get the same."""
    resharded_at: tuple[float, ...] = ()
    """Times at which the number of shards doubles."""
    mishaps: tuple[Mishap, ...] = ()
    steady: bool = False
    """Whether the load has no trend, so that it calls for no change."""
    cumulated: Series = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cumulated", np.concatenate(([0.0], np.cumsum(self.rate))))

    @property
    def seconds(self) -> int:
        return len(self.rate)

    def arrived(self, at: float) -> float:
        """Records that have arrived until then."""
        if at <= 0:
            return 0.0
        second = min(int(at), self.seconds - 1)
        return float(self.cumulated[second] + (at - second) * self.rate[second])

    def shards_at(self, at: float) -> int:
        """Open shards at that position of the stream."""
        return self.shards << sum(at > time for time in self.resharded_at)

    def share_at(self, at: float) -> float:
        """Share of the records that the fullest shard gets."""
        even = 1.0 / self.shards_at(at)
        if self.hot_share is None:
            return even
        return max(even, float(self.hot_share[min(int(max(at, 0.0)), self.seconds - 1)]))

    def room_at(self, at: float) -> int:
        """Executors that the cluster can hold."""
        rooms = [mishap.value for mishap in self.mishaps if mishap.kind == "room" and mishap.at <= at]
        return rooms[-1] if rooms else _NEVER_FULL

    def changes(self) -> list[tuple[float, str, int]]:
        """The mishaps in their order."""
        return sorted((mishap.at, mishap.kind, mishap.value) for mishap in self.mishaps if mishap.at > 0)


@dataclass(frozen=True, slots=True)
class Stream:
    """What the scenarios of one size have in common."""

    shards: int
    costs: BatchCosts
    seed: int

    @property
    def cores(self) -> int:
        return int(_CORES.get(self.shards, _MORE_CORES))

    @property
    def full(self) -> float:
        """Records per second when all shards are full."""
        return self.shards * SHARD_WRITE_BYTES / self.costs.record_bytes

    def executors(self, share: float, utilization: float = 1.0) -> int:
        """That a share of the full load keeps so busy."""
        return max(1, math.ceil(share * self.full * self.costs.per_record / self.cores / utilization))

    def scenario(self, name: str, story: str, load: Series, **more: object) -> Scenario:
        """A scenario with this load, as a share of the full one."""
        spec = Scaling(
            min_executors=1,
            max_executors=2 * self.executors(1.0) + 1,
            max_lag=timedelta(seconds=60),
            target_utilization=0.85,
        )
        interval = 10.0
        largest = max(500_000, int(2 * interval * self.full))
        fields: dict[str, object] = {
            "name": name,
            "story": story,
            "shards": self.shards,
            "rate": load * self.full,
            "spec": spec,
            "limits": BatchLimits(interval, largest, int(largest * self.costs.record_bytes), self.cores),
            "initial": min(spec.max_executors, self.executors(float(load[:60].mean()), spec.target_utilization)),
            "seed": self.seed,
        }
        return Scenario(**{**fields, **more})  # type: ignore[arg-type]


def _steps(seconds: int, *levels: tuple[int, float]) -> Series:
    """Levels that hold from their second on."""
    load = np.zeros(seconds)
    for at, level in levels:
        load[at:] = level
    return load


def _flicker(load: Series, seed: int, spread: float, memory: float = 60.0) -> Series:
    """Traffic is never even: a factor that keeps some of itself for about a minute, and one that does not."""
    rng = np.random.default_rng(seed)
    keep = math.exp(-1 / memory)
    kicks = rng.standard_normal(len(load)) * math.sqrt(1 - keep * keep)
    slow = np.empty(len(load))
    value = 0.0
    for index, kick in enumerate(kicks):
        value = keep * value + kick
        slow[index] = value
    fast = rng.standard_normal(len(load))
    return np.asarray(load * np.exp(spread * slow + spread / 2 * fast - 0.625 * spread**2))


def _constant(stream: Stream) -> Scenario:
    load = _flicker(_steps(4 * HOUR, (0, 0.5)), stream.seed, 0.02)
    return stream.scenario("constant", "half of what the shards take, for four hours", load, steady=True)


def _step(stream: Stream) -> Scenario:
    load = _steps(4 * HOUR, (0, 0.25), (HOUR, 0.75), (3 * HOUR, 0.25))
    return stream.scenario("step", "three times the load from one second to the next, back after two hours",
                           _flicker(load, stream.seed, 0.03))  # fmt: skip


def _ramp(stream: Stream) -> Scenario:
    load = np.interp(np.arange(6 * HOUR), [0, HOUR / 2, 3.5 * HOUR, 5 * HOUR], [0.15, 0.15, 0.85, 0.85])
    return stream.scenario("ramp", "up by a factor of almost six in three hours", _flicker(load, stream.seed, 0.03))


def _diurnal(stream: Stream) -> Scenario:
    hours = np.arange(24 * HOUR) / HOUR
    load = 0.45 - 0.33 * np.cos(2 * np.pi * hours / 24) + 0.05 * np.sin(2 * np.pi * hours / 6)
    return stream.scenario("diurnal", "a day: quiet nights, a busy afternoon", _flicker(load, stream.seed, 0.04))


def _spike(stream: Stream) -> Scenario:
    base, high = 0.3, 0.9
    load = _steps(4 * HOUR, (0, base), (HOUR, high), (HOUR + 5 * MINUTE, base), (2 * HOUR, high),
                  (2 * HOUR + 90, base))  # fmt: skip
    return stream.scenario("spike", "three times the load for five minutes, and later for 90 seconds",
                           _flicker(load, stream.seed, 0.03))  # fmt: skip


def _hot_shard(stream: Stream) -> Scenario:
    seconds = 3 * HOUR
    load = _flicker(_steps(seconds, (0, 0.3)), stream.seed, 0.03)
    # It takes in all that a shard can, and two consumers may together read no more than twice that.
    hot = np.where((np.arange(seconds) >= HOUR) & (np.arange(seconds) < 2 * HOUR), 1.0 / stream.shards, 0.0)
    return stream.scenario("hot shard", "one shard is filled to its limit for an hour, and two writers read it",
                           load + hot, consumers=2, hot_share=np.where(hot > 0, hot / (load + hot), 0.0))  # fmt: skip


def _noisy(stream: Stream) -> Scenario:
    load = _flicker(_steps(12 * HOUR, (0, 0.45)), stream.seed, 0.15)
    rng = np.random.default_rng(stream.seed + 7)
    lost = tuple(Mishap(float(at), "lost", 1) for at in np.sort(rng.uniform(HOUR, 12 * HOUR, 6)))
    return stream.scenario("noisy", "half a day of uneven load around the same mean; executors die now and then",
                           np.minimum(load, 1.0), mishaps=lost, steady=True)  # fmt: skip


def _dead_driver(stream: Stream) -> Scenario:
    load = _flicker(_steps(3 * HOUR, (0, 0.4)), stream.seed, 0.03)
    mishaps = (Mishap(HOUR, "died"), Mishap(HOUR + 10 * MINUTE, "revived"))
    return stream.scenario("dead driver", "the driver is gone for ten minutes", load, mishaps=mishaps)


def _starved(stream: Stream) -> Scenario:
    load = _steps(4 * HOUR, (0, 0.25), (HOUR, 0.75))
    room = stream.executors(0.5)
    mishaps = (Mishap(0.0, "room", max(room, stream.executors(0.25, 0.7))), Mishap(2 * HOUR, "room", _NEVER_FULL))
    return stream.scenario("starved", "three times the load, and for an hour room for two thirds of what it takes",
                           _flicker(load, stream.seed, 0.03), mishaps=mishaps)  # fmt: skip


def _resharding(stream: Stream) -> Scenario:
    load = _steps(3 * HOUR, (0, 0.7), (HOUR + 5 * MINUTE, 1.2))
    return stream.scenario("resharding", "a stream near its limit is split, and gets more than it could take before",
                           _flicker(load, stream.seed, 0.03), resharded_at=(float(HOUR),))  # fmt: skip


SCENARIOS: dict[str, Callable[[Stream], Scenario]] = {
    "constant": _constant,
    "step": _step,
    "ramp": _ramp,
    "diurnal": _diurnal,
    "spike": _spike,
    "hot shard": _hot_shard,
    "noisy": _noisy,
    "dead driver": _dead_driver,
    "starved": _starved,
    "resharding": _resharding,
}
SIZES = (4, 64, 1_000, 10_000)
