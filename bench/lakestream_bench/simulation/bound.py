"""What no policy can do better: a lower bound of lateness and cost, for work that flows like water.

Records are worked on as they arrive, at full use of all cores, without anything that is fixed, by executors that are
had in fractions and known of in advance; only their starts are paid. The work done up to a time then lies between what
has arrived, and what has arrived longer ago than the lag goal, or as much of that as all executors together could have
done. Of all ways through this tube the taut string is the cheapest for every convex price of executors, one with a
least number of them too, and its rises, which are starts, sum up to the least: it has no turn that the tube does not
force.

What a policy pays beyond it is for whole executors, for what is fixed in a batch, and for what it cannot know.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakestream_bench.simulation.costs import BatchCosts, mean_noise
from lakestream_bench.simulation.shard import ANSWER_BYTES, READ_BYTES, readable_by_each
from lakestream_bench.simulation.streams import Mishaps, Scenario

Series = NDArray[np.float64]

STEP = 5
"""Seconds: a batch takes longer, so no policy sees anything finer."""
START_SECONDS = 20.0
"""That a started executor is paid for before it works: the median of `cluster.start_delays`."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Of one scenario."""

    late_seconds: float
    """That not even the largest number of executors would avoid."""
    executor_seconds: float
    """Of whoever is late for no longer than that."""
    trace: tuple[tuple[float, float, float], ...]
    """Time, age of the oldest record that is not worked on, executors."""


def bound_of(scenario: Scenario, costs: BatchCosts) -> Bound:
    """The bound of a scenario."""
    times = np.arange(0, scenario.seconds + 1, STEP, dtype=float)
    work = work_of(scenario, costs, times)
    most = _capacity(scenario, times)
    fastest = _fastest(work, most, _readable(scenario, costs, times))
    late = float(STEP * np.sum(_ages(times, work, fastest) > scenario.max_lag + STEP))
    due = np.interp(times - scenario.max_lag, times, work, left=0.0)
    string = taut_string(np.minimum(due, fastest), np.maximum(work, fastest))
    executors = np.diff(string) / STEP / scenario.cores
    paid = np.where(most > 0, np.maximum(executors, scenario.scaling.min_executors), 0.0)
    starts = np.maximum(np.diff(np.concatenate(([scenario.initial], paid))), 0.0).sum()
    ages = _ages(times, work, string)
    trace = tuple(zip(times[1:].tolist(), ages[1:].tolist(), paid.tolist(), strict=True))
    return Bound(late, float(STEP * paid.sum() + START_SECONDS * starts), trace)


def work_of(scenario: Scenario, costs: BatchCosts, times: Series) -> Series:
    """Core-seconds that have arrived, and those of compaction that they bring about.

    None of tasks that wait for a shard: who asks for no more than may be read then does not.
    """
    seconds = times.astype(int)
    compacting = scenario.compaction.share * costs.finish.per_record if scenario.compaction else 0.0
    weight = mean_noise(costs) * np.diff(costs.weight(scenario.records[seconds], scenario.bytes[seconds]))
    return np.concatenate(([0.0], np.cumsum((costs.per_record + compacting) * weight)))


def _capacity(scenario: Scenario, times: Series) -> Series:
    """Cores that can be had in each step."""
    most = np.full(len(times) - 1, float(min(scenario.scaling.max_executors, scenario.room_at(0.0))))
    for mishap in scenario.changes():
        after = times[1:] > mishap.at
        if mishap.kind is Mishaps.ROOM:
            most[after] = min(scenario.scaling.max_executors, mishap.value)
        elif mishap.kind in (Mishaps.DIED, Mishaps.STOPPED):
            most[after] = 0.0
        elif mishap.kind in (Mishaps.REVIVED, Mishaps.RESUMED):
            most[after] = scenario.scaling.max_executors
    return most * scenario.cores


def _readable(scenario: Scenario, costs: BatchCosts, times: Series) -> Series:
    """Work that Kinesis has given away by each time at most, as the fullest shard allows."""
    arrived = np.array([scenario.share_at(at) for at in times[:-1]]) * np.diff(scenario.bytes[times.astype(int)])
    others = [readable_by_each(scenario, at, at + STEP) for at in times[:-1].tolist()]
    allowed = STEP * READ_BYTES - (scenario.consumers - 1) * np.array(others)
    # Without a full shard all of this is far from the limit.
    if (arrived <= allowed).all():
        return np.full(len(times), np.inf)
    came = np.concatenate(([0.0], np.cumsum(arrived)))
    read = np.minimum(came, _fastest(came, allowed / STEP, None) + ANSWER_BYTES)
    return np.asarray(np.interp(np.interp(read, came, times), times, work_of(scenario, costs, times)))


def _fastest(arrived: Series, capacity: Series, readable: Series | None) -> Series:
    """What is done by each time if all that there is works as much as it can."""
    done = np.zeros(len(arrived))
    reached = 0.0
    limit = arrived if readable is None else np.minimum(arrived, readable)
    for index, (cores, most) in enumerate(zip(capacity.tolist(), limit[1:].tolist(), strict=True), 1):
        reached = min(reached + cores * STEP, most)
        done[index] = reached
    return done


def _ages(times: Series, arrived: Series, done: Series) -> Series:
    """Age of the oldest record that is not worked on; 0: there is none."""
    # Where nothing comes the last time at which as much had arrived counts.
    came = times[np.minimum(np.searchsorted(arrived, done + 1e-9, side="right"), len(times) - 1)]
    return np.maximum(0.0, times - came)


def taut_string(low: Series, high: Series) -> Series:
    """The shortest way from `low[0]` to `low[-1]` through a tube, at evenly spaced points.

    Args:
        low: the tube's floor.
        high: its ceiling, nowhere below.
    """
    last = len(low) - 1
    floor, ceiling = low.tolist(), high.tolist()
    ceiling[last] = floor[last]
    ceiling[0] = floor[0]
    knots = [0]
    values = [floor[0]]
    # The funnel that can be seen from the last knot: its upper wall is convex, its lower one concave.
    upper: deque[tuple[int, float]] = deque()
    lower: deque[tuple[int, float]] = deque()
    for index in range(1, last + 1):
        for wall, point, other, sign in (
            (upper, (index, ceiling[index]), lower, 1.0),
            (lower, (index, floor[index]), upper, -1.0),
        ):
            apex = (knots[-1], values[-1])
            while (
                wall and sign * (_slope(wall[-2] if len(wall) > 1 else apex, wall[-1]) - _slope(wall[-1], point)) >= 0
            ):
                wall.pop()
            if not wall:
                # The way has to bend round the other wall where that one is in sight.
                while other and sign * (_slope(apex, other[0]) - _slope(apex, point)) > 0:
                    apex = other.popleft()
                    knots.append(apex[0])
                    values.append(apex[1])
            wall.append(point)
    if knots[-1] != last:
        for place, value in lower if len(lower) > 1 else ((last, floor[last]),):
            knots.append(place)
            values.append(value)
    return np.asarray(np.interp(np.arange(last + 1), knots, values))


def _slope(one: tuple[int, float], other: tuple[int, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])
