"""In which order things are measured, and what many measurements come to. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lakestream_bench.compare.results import Look, Trial

SPARK, NATIVE = "spark", "native"
"""The engines that are asked."""
ENGINES = {SPARK: "Spark, stock session", NATIVE: "hudi-rs and DuckDB (lakestream query)"}
"""As a person is told of them."""


@dataclass(frozen=True)
class Turn:
    """One trial to be run."""

    scenario: str
    repetition: int
    arm: str


def rotated(scenarios: Sequence[str], arms: Sequence[str], repetitions: int) -> list[Turn]:
    """All trials; in each repetition another arm begins, and none always meets the same neighbour's leftovers.

    To rotate the arms alone would leave those from the fourth on behind the same one in each of three. So the first
    repetition goes through them as 0, 1, -1, 2, -2 and so on, and each further one a place on: a Latin square in which
    neighbours differ (E. J. Williams, 1949).
    """
    places = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(len(arms))]
    return [
        Turn(scenario, repetition, arms[(place + repetition) % len(arms)])
        for scenario in scenarios
        for repetition in range(repetitions)
        for place in places
    ]


@dataclass(frozen=True)
class Spread:
    """Median, lowest and highest of the repetitions."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = sorted(values)
        if not found:
            raise ValueError("there is nothing to take the median of")
        return cls(statistics.median(found), found[0], found[-1], len(found))

    def text(self, form: str) -> str:
        """The median, and the range in brackets if there is one."""
        median, low, high = (format(value, form) for value in (self.median, self.low, self.high))
        return median if low == high else f"{median} ({low}–{high})"


def degradation(values: Sequence[float]) -> float | None:
    """The degradation rate of LST-Bench: the mean relative change from one measurement to the next.

    Source: Camacho-Rodríguez et al., SIGMOD 2024, section 3.3: S_DR = 1/n · Σ (M_i - M_{i-1}) / M_{i-1}.

    Args:
        values: of the same query or batch, in the order of the table's life; of seconds, more than 0 is slower.

    Returns:
        None if there are not two measurements above zero.
    """
    steps = [(later - earlier) / earlier for earlier, later in pairwise(values) if earlier > 0]
    return statistics.fmean(steps) if steps else None


@dataclass(frozen=True)
class Freshness:
    """Age of the events when they became visible, seconds."""

    interval: float
    """Seconds between the beginnings of two batches."""
    p50: float
    p99: float


def freshness(batch_seconds: Sequence[float], interval: float) -> Freshness:
    """How old events are when they become visible, if they come evenly and batches take what was measured.

    A batch begins when the interval since the last beginning is over and the batch before is done; it has all events
    that came until then, and is visible after its seconds.

    Args:
        batch_seconds: of the batches, one after the other, from plan to commit.
        interval: seconds between the beginnings of two batches (`trigger.interval`).
    """
    if not batch_seconds:
        raise ValueError("there is no batch")
    ages: list[float] = []
    weights: list[float] = []
    began = visible = 0.0
    for seconds in batch_seconds:
        begins = max(began + interval, visible)
        visible = begins + seconds
        # Slices of the events that came since the last beginning, each by its middle.
        for part in range(_SLICES):
            came = began + (begins - began) * (part + 0.5) / _SLICES
            ages.append(visible - came)
            weights.append(begins - began)
        began = begins
    p50, p99 = _weighted(ages, weights, (0.5, 0.99))
    return Freshness(interval, p50, p99)


_SLICES = 20


def _weighted(values: Sequence[float], weights: Sequence[float], shares: Sequence[float]) -> list[float]:
    order = np.argsort(values)
    ordered, below = np.asarray(values)[order], np.cumsum(np.asarray(weights)[order])
    return [float(ordered[min(int(np.searchsorted(below, share * below[-1])), len(ordered) - 1)]) for share in shares]


def valid(trials: Sequence[Trial], scenario: str, arm: str) -> list[Trial]:
    """The repetitions of an arm that have figures; none has if one of them gave a wrong answer."""
    own = [trial for trial in trials if (trial.scenario, trial.arm) == (scenario, arm)]
    return [] if any(trial.is_wrong for trial in own) else [trial for trial in own if trial.failure is None]


def rows_per_second(trial: Trial) -> float:
    """Events made visible per second, in a backlog."""
    return sum(batch.records for batch in trial.batches) / sum(batch.seconds for batch in trial.batches)


def cpu_per_million(trial: Trial) -> float:
    """CPU-seconds per million events."""
    return sum(batch.cpu for batch in trial.batches) / sum(batch.records for batch in trial.batches) * 1e6


def write_amplification(trial: Trial) -> float:
    """Bytes written through bytes of the records as they were in the stream."""
    return sum(batch.bytes_written for batch in trial.batches) / sum(batch.bytes for batch in trial.batches)


def space_amplification(look: Look) -> float:
    """Bytes at rest through those of the living orders in one Parquet file."""
    return look.bytes_at_rest / look.ideal_bytes


def alone(trial: Trial) -> list[float]:
    """Seconds of each batch if it did not wait for another: its stages, one after the other."""
    return [sum(batch.stages.values()) for batch in trial.batches]


@dataclass(frozen=True)
class Quarters:
    """A figure of each quarter of the batches, as the table grows: medians of the repetitions."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, trials: Sequence[Trial], figure: Callable[[Trial], float]) -> Quarters:
        """A figure of whole trials, of each quarter of theirs."""
        quarters = zip(*(_in_quarters(trial) for trial in trials), strict=True)
        return cls(tuple(statistics.median(map(figure, parts)) for parts in quarters))

    def text(self, form: str) -> str:
        """One behind the other."""
        return " → ".join(format(value, form) for value in self.values)


def _in_quarters(trial: Trial) -> list[Trial]:
    count = len(trial.batches)
    ends = [quarter * count // 4 for quarter in range(5)]
    return [replace(trial, batches=trial.batches[begin:end]) for begin, end in pairwise(ends) if begin < end]


def seconds_of(looks: Iterable[Look], kind: str, engine: str = SPARK, *, cold: bool = False) -> list[float]:
    """What a query took at each look that asked it."""
    return [
        asked.cold if cold else asked.warm
        for look in looks
        for asked in look.asked
        if (asked.kind, asked.engine) == (kind, engine)
    ]
