"""Loads and mishaps: what the policies are put through."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lakestream_bench.simulation.streams import NEVER_FULL, Compaction, Mishap, Mishaps, Scenario, Series, Stream

MINUTE, HOUR = 60, 3600


def steps(seconds: int, *levels: tuple[int, float]) -> Series:
    """Levels that hold from their second on."""
    load = np.zeros(seconds)
    for at, level in levels:
        load[at:] = level
    return load


def flicker(load: Series, seed: int, spread: float, memory: float = 60.0) -> Series:
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
    load = flicker(steps(4 * HOUR, (0, 0.5)), stream.seed, 0.02)
    return stream.scenario("constant", "half of what the shards take, for four hours", load)


def _step(stream: Stream) -> Scenario:
    load = steps(4 * HOUR, (0, 0.25), (HOUR, 0.75), (3 * HOUR, 0.25))
    return stream.scenario("step", "three times the load from one second to the next, back after two hours",
                           flicker(load, stream.seed, 0.03))  # fmt: skip


def _ramp(stream: Stream) -> Scenario:
    load = np.interp(np.arange(6 * HOUR), [0, HOUR / 2, 3.5 * HOUR, 5 * HOUR], [0.15, 0.15, 0.85, 0.85])
    return stream.scenario("ramp", "up by a factor of almost six in three hours", flicker(load, stream.seed, 0.03))


def _diurnal(stream: Stream) -> Scenario:
    hours = np.arange(24 * HOUR) / HOUR
    load = 0.45 - 0.33 * np.cos(2 * np.pi * hours / 24) + 0.05 * np.sin(2 * np.pi * hours / 6)
    return stream.scenario("diurnal", "a day: quiet nights, a busy afternoon", flicker(load, stream.seed, 0.04))


def _spike(stream: Stream) -> Scenario:
    base, high = 0.3, 0.9
    load = steps(4 * HOUR, (0, base), (HOUR, high), (HOUR + 5 * MINUTE, base), (2 * HOUR, high),
                  (2 * HOUR + 90, base))  # fmt: skip
    return stream.scenario("spike", "three times the load for five minutes, and later for 90 seconds",
                           flicker(load, stream.seed, 0.03))  # fmt: skip


def _hot_shard(stream: Stream) -> Scenario:
    seconds = 3 * HOUR
    load = flicker(steps(seconds, (0, 0.3)), stream.seed, 0.03)
    # It takes in all that a shard can, and two consumers may together read no more than twice that.
    hot = np.where((np.arange(seconds) >= HOUR) & (np.arange(seconds) < 2 * HOUR), 1.0 / stream.shards, 0.0)
    return stream.scenario("hot shard", "one shard is filled to its limit for an hour, and two writers read it",
                           load + hot, consumers=2, hot_share=np.where(hot > 0, hot / (load + hot), 0.0))  # fmt: skip


def _noisy(stream: Stream) -> Scenario:
    load = flicker(steps(12 * HOUR, (0, 0.45)), stream.seed, 0.15)
    rng = np.random.default_rng(stream.seed + 7)
    lost = tuple(Mishap(float(at), Mishaps.LOST, 1) for at in np.sort(rng.uniform(HOUR, 12 * HOUR, 6)))
    return stream.scenario("noisy", "half a day of uneven load around the same mean; executors die now and then",
                           np.minimum(load, 1.0), mishaps=lost)  # fmt: skip


def _dead_driver(stream: Stream) -> Scenario:
    load = flicker(steps(3 * HOUR, (0, 0.4)), stream.seed, 0.03)
    mishaps = (Mishap(HOUR, Mishaps.DIED), Mishap(HOUR + 10 * MINUTE, Mishaps.REVIVED))
    return stream.scenario("dead driver", "the driver is gone for ten minutes", load, mishaps=mishaps)


def _starved(stream: Stream) -> Scenario:
    load = steps(4 * HOUR, (0, 0.25), (HOUR, 0.75))
    room = stream.executors(0.5)
    mishaps = (
        Mishap(0.0, Mishaps.ROOM, max(room, stream.executors(0.25, 0.7))),
        Mishap(2 * HOUR, Mishaps.ROOM, NEVER_FULL),
    )
    return stream.scenario("starved", "three times the load, and for an hour room for two thirds of what it takes",
                           flicker(load, stream.seed, 0.03), mishaps=mishaps)  # fmt: skip


def _resharding(stream: Stream) -> Scenario:
    load = steps(3 * HOUR, (0, 0.7), (HOUR + 5 * MINUTE, 1.2))
    return stream.scenario("resharding", "a stream near its limit is split, and gets more than it could take before",
                           flicker(load, stream.seed, 0.03), resharded_at=(float(HOUR),))  # fmt: skip


def _silence(stream: Stream) -> Scenario:
    load = steps(5 * HOUR, (0, 0.5), (HOUR, 0.0), (3 * HOUR, 0.5), (4 * HOUR, 0.0), (4 * HOUR + 20 * MINUTE, 0.3))
    return stream.scenario("silence", "nothing comes for two hours, then all of it at once; later for twenty minutes",
                           flicker(load, stream.seed, 0.03))  # fmt: skip


def _compaction(stream: Stream) -> Scenario:
    load = flicker(steps(3 * HOUR, (0, 0.4), (HOUR, 0.6)), stream.seed, 0.03)
    return stream.scenario("compaction", "log files are compacted beside the batches, on the same executors, every 20",
                           load, compaction=Compaction(20, 0.5))  # fmt: skip


def _spot(stream: Stream) -> Scenario:
    load = flicker(steps(4 * HOUR, (0, 0.5)), stream.seed, 0.03)
    lost = max(1, stream.executors(0.5) // 3)
    mishaps = tuple(Mishap(at * HOUR, Mishaps.LOST, lost) for at in (1.0, 1.1, 2.0, 3.0))
    return stream.scenario("spot reclaim", "a third of the executors is taken away at once, four times in four hours",
                           load, mishaps=mishaps)  # fmt: skip


def _pauses(stream: Stream) -> Scenario:
    load = flicker(steps(3 * HOUR, (0, 0.4)), stream.seed, 0.03)
    rng = np.random.default_rng(stream.seed + 3)
    begins = np.cumsum(rng.uniform(120, 360, 60)) + HOUR / 2
    mishaps = tuple(
        Mishap(float(at), kind)
        for begin in begins[begins < 2.5 * HOUR]
        for at, kind in ((begin, Mishaps.STOPPED), (begin + 20, Mishaps.RESUMED))
    )
    return stream.scenario("pauses", "tasks stand still for 20 s, every four minutes or so, for two hours",
                           load, mishaps=mishaps)  # fmt: skip


def _two_writers(stream: Stream) -> Scenario:
    load = flicker(steps(3 * HOUR, (0, 0.4), (HOUR, 0.8), (2 * HOUR, 0.4)), stream.seed, 0.02)
    return stream.scenario("two writers", "two writers share what shards give, and need five sixths of it for an hour",
                           np.minimum(load, 0.93), consumers=2)  # fmt: skip


def _sizes(stream: Stream) -> Scenario:
    load = flicker(steps(4 * HOUR, (0, 0.4)), stream.seed, 0.03)
    # In bytes the load stays the same, in records it does not.
    large = (np.arange(4 * HOUR) // (30 * MINUTE)) % 2 == 1
    sizes = np.where(large, 4.0, 1.0) * stream.costs.record_bytes
    return stream.scenario("two sizes", "records are four times as large, and a quarter as many, every other half hour",
                           load, record_bytes=sizes)  # fmt: skip


def _cold(stream: Stream) -> Scenario:
    load = steps(3 * HOUR, (0, 0.25), (HOUR, 0.6), (2 * HOUR, 0.25))
    return stream.scenario("cold starts", "more than twice the load, and executors that take two minutes to warm up",
                           flicker(load, stream.seed, 0.03), warming=120.0)  # fmt: skip


def _random(stream: Stream) -> Scenario:
    rng = np.random.default_rng(1000 + stream.seed)
    seconds = 4 * HOUR
    times = np.concatenate(([0], np.sort(rng.uniform(0, seconds, 10)), [seconds]))
    levels = rng.uniform(0.1, 0.85, len(times))
    # Between two of these times the load is even, or goes from one level to the next.
    load = np.empty(seconds)
    for begin, end, low, high in zip(times[:-1], times[1:], levels[:-1], levels[1:], strict=True):
        part = slice(int(begin), int(end))
        count = len(load[part])
        load[part] = np.linspace(low, high, count) if rng.random() < 0.4 else low
    noise = float(rng.choice([0.02, 0.05, 0.1]))
    return stream.scenario("random", "levels, steps and ramps as they come, another load with each seed",
                           np.minimum(flicker(load, stream.seed, noise), 0.95))  # fmt: skip


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
    "silence": _silence,
    "compaction": _compaction,
    "spot reclaim": _spot,
    "pauses": _pauses,
    "two writers": _two_writers,
    "two sizes": _sizes,
    "cold starts": _cold,
    "random": _random,
}
SIZES = (4, 64, 1_000, 10_000)
