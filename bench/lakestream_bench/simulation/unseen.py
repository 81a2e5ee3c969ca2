"""Loads with which no rule was made: they tell whether the rules are good for more than the suite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lakestream_bench.simulation.scenarios import HOUR, MINUTE, flicker, steps
from lakestream_bench.simulation.streams import Compaction, Scenario, Series, Stream

_JOB, _QUIET, _JOB_MINUTES = 0.9, 0.1, 10


def _stairs(stream: Stream) -> Scenario:
    load = steps(6 * HOUR, *((index * 40 * MINUTE, level) for index, level in
                             enumerate([0.2, 0.35, 0.6, 0.8, 0.6, 0.4, 0.7, 0.3, 0.2])))  # fmt: skip
    return stream.scenario("stairs", "up and down by steps, every forty minutes", flicker(load, stream.seed, 0.03))


def _sawtooth(stream: Stream) -> Scenario:
    load = 0.2 + 0.6 * (np.arange(5 * HOUR) % HOUR) / HOUR
    return stream.scenario(
        "sawtooth", "up by four times in an hour, and back at once", flicker(load, stream.seed, 0.03)
    )


def _bursts(stream: Stream) -> Scenario:
    rng = np.random.default_rng(stream.seed + 50)
    load = np.full(4 * HOUR, 0.3)
    for begin in np.sort(rng.uniform(HOUR / 2, 4 * HOUR, 12)).astype(int):
        load[begin : begin + int(rng.uniform(20, 120))] = rng.uniform(0.5, 0.9)
    return stream.scenario("bursts", "twelve bursts of half a minute to two minutes", flicker(load, stream.seed, 0.03))


def _decline(stream: Stream) -> Scenario:
    load = np.linspace(0.8, 0.15, 5 * HOUR)
    return stream.scenario("decline", "slowly down to a fifth, for five hours", flicker(load, stream.seed, 0.03))


def _wander(stream: Stream) -> Scenario:
    rng = np.random.default_rng(stream.seed + 60)
    walk = np.cumsum(rng.standard_normal(6 * HOUR // MINUTE)) * 0.06
    load = np.clip(0.4 * np.exp(np.repeat(walk - walk.mean(), MINUTE)), 0.08, 0.9)
    return stream.scenario("wander", "a load that goes its own way, some percent a minute",
                           flicker(load, stream.seed, 0.03))  # fmt: skip


def _uneven(stream: Stream) -> Scenario:
    load = flicker(np.full(6 * HOUR, 0.5), stream.seed, 0.08)
    return stream.scenario("uneven", "half as uneven as noisy", np.minimum(load, 1.0))


def _often_compacted(stream: Stream) -> Scenario:
    load = flicker(steps(3 * HOUR, (0, 0.4), (HOUR, 0.6)), stream.seed, 0.03)
    return stream.scenario("often compacted", "as compaction, but every six batches", load,
                           compaction=Compaction(6, 0.5))  # fmt: skip


def _hourly(stream: Stream) -> Series:
    """Ten minutes at the begin of each hour but the first."""
    seconds = np.arange(4 * HOUR)
    works = (seconds >= HOUR) & (seconds % HOUR < _JOB_MINUTES * MINUTE)
    return flicker(np.where(works, _JOB, _QUIET), stream.seed, 0.03)


def _jobs(stream: Stream) -> Scenario:
    return stream.scenario("jobs", "nine times the load for ten minutes of each hour", _hourly(stream))


def _scheduled(stream: Stream) -> Scenario:
    known = {"cron": "0 * * * *", "duration": f"{_JOB_MINUTES}m", "executors": stream.executors(_JOB, 0.9)}
    return stream.scenario("jobs by schedule", "the same, and spec.scaling.schedule knows of it", _hourly(stream),
                           scaling={"schedule": [known]})  # fmt: skip


UNSEEN: dict[str, Callable[[Stream], Scenario]] = {
    "stairs": _stairs,
    "sawtooth": _sawtooth,
    "bursts": _bursts,
    "decline": _decline,
    "wander": _wander,
    "uneven": _uneven,
    "often compacted": _often_compacted,
    "jobs": _jobs,
    "jobs by schedule": _scheduled,
}
