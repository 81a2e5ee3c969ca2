"""What a run comes to: `scalability.json`. Pure but for reading and writing it.

*Capacity* is the most load at which so many task slots keep the goal, *demand* the fewest slots that keep it at a load
(Henning and Hasselbring, Empirical Software Engineering 2022).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from lakestream_api import Progress
from lakestream_bench._figures import load_figures

TREND = 0.1
"""Seconds by which records may become visible later with each second: above it the lag grows, and a load that is held
for longer would not be kept. A load that is a tenth above what is done makes it grow so fast."""
MADE = 0.95
"""Of a load, that has to be sent at least: otherwise the step says nothing."""


@dataclass(frozen=True)
class Step:
    """One load, held for some seconds on so many slots."""

    records_per_second: float
    """Asked for."""
    sent_per_second: float
    """What the stream took."""
    batches: int
    """Committed meanwhile."""
    oldest_seconds: float | None
    """The highest 99th percentile of a batch's freshness. None: no batch was committed."""
    trend: float | None
    """Seconds that freshness grew by per second, from the middle third of the batches to the last one: the first third
    is on its way from nothing to what the load makes of it. None: there were fewer than six batches."""
    kept: bool
    """Whether the goal was kept, and the lag did not grow."""

    @property
    def was_made(self) -> bool:
        """Whether the load was as high as asked for."""
        return self.sent_per_second >= MADE * self.records_per_second


def judge(records_per_second: float, sent_per_second: float, batches: Sequence[Progress], goal: float) -> Step:
    """What a step comes to.

    Args:
        records_per_second: asked for.
        sent_per_second: what the stream took.
        batches: committed while the load was held, in order.
        goal: seconds from arrival to visible, at most.
    """
    seen = [(batch.finished_at.timestamp(), batch.freshness) for batch in batches if batch.freshness is not None]
    oldest = max((freshness.p99_seconds for _, freshness in seen), default=None)
    third = len(seen) // 3
    trend = None
    if third >= 2:
        (at_first, age_at_first), (at_last, age_at_last) = (
            (statistics.median(at for at, _ in part), statistics.median(age.p50_seconds for _, age in part))
            for part in (seen[-2 * third : -third], seen[-third:])
        )
        trend = (age_at_last - age_at_first) / (at_last - at_first)
    kept = oldest is not None and oldest <= goal and (trend is None or trend <= TREND)
    return Step(records_per_second, sent_per_second, len(seen), oldest, trend, kept)


@dataclass(frozen=True)
class Measured:
    """What was measured on so many slots."""

    slots: int
    steps: tuple[Step, ...]
    """In the order in which they were tried."""

    @property
    def capacity(self) -> float:
        """Records per second, of the loads tried; 0: not even the lowest was kept."""
        return max((step.records_per_second for step in self.steps if step.kept and step.was_made), default=0.0)

    @property
    def told(self) -> str:
        """The capacity in words."""
        least = min(step.records_per_second for step in self.steps)
        return f"{self.capacity:,.0f}" if self.capacity else f"below {least:,.0f}"


@dataclass(frozen=True)
class Demand:
    """Of a load."""

    shards: int
    """That have it, when all are full of records."""
    records_per_second: float
    slots: int


@dataclass(frozen=True)
class Capacity:
    """Of some slots."""

    slots: int
    records_per_second: float


@dataclass(frozen=True)
class Scalability:
    """All of it."""

    measured_at: str
    cores: int
    load_average: float
    """Of the machine's last minute before; well above 0, others were at work and the figures are too low."""
    writer: str
    interval_seconds: float
    """Between two batches."""
    goal_seconds: float
    """From a record's arrival to its being visible."""
    step_seconds: float
    """For which a load was held."""
    measured: tuple[Measured, ...]
    model: str
    """Where the model's costs of a batch are from."""
    modelled_capacity: tuple[Capacity, ...]
    """For the slots that were measured."""
    modelled_demand: tuple[Demand, ...]
    """Of full shards; those for which no number of slots keeps the goal are left out."""

    @property
    def measured_to(self) -> float:
        """The highest load that was kept: what is above it is modelled."""
        return max((one.capacity for one in self.measured), default=0.0)

    def save(self, file: Path) -> None:
        """Write it as JSON, for `load_scalability`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def demand_of(measured: Sequence[Measured], records_per_second: float) -> int | None:
    """The fewest slots that kept a load, of those measured; None: none did."""
    return min((one.slots for one in measured if one.capacity >= records_per_second), default=None)


def load_scalability(file: Path) -> Scalability | None:
    """What a run wrote, as `load_figures`."""
    return load_figures(file, Scalability, "lakestream_bench.scalability")
