"""What batches cost in the simulator: two lines, fitted to what the benchmarks measured."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Amount = TypeVar("Amount", float, NDArray[np.float64])

_ASSUMED_RESIDUAL = 0.1
"""Spread of batches around their line where only means were measured."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """`seconds = fixed + per_record · records / tasks`."""

    fixed: float
    """Seconds."""
    per_record: float
    """Core-seconds."""
    residual: float
    """Standard deviation of measured through predicted."""
    r2: float | None = None
    """Share of the measured variance that the line explains; None: a line through two points."""


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """The stages of one writer's batches. Fetching one batch runs beside writing the one before."""

    writer: str
    prepare: StageCost
    finish: StageCost
    source: str
    """Where the figures are from."""
    record_bytes: float = 250.0
    byte_share: float = 0.35
    """Of the core-seconds per record, what goes by its bytes: not measured, but taken to be so."""

    @property
    def per_record(self) -> float:
        """Core-seconds per record, over both stages."""
        return self.prepare.per_record + self.finish.per_record

    def weight(self, records: Amount, size: Amount) -> Amount:
        """How many records of the usual size cost as much as so many records of so many bytes in all."""
        return (1 - self.byte_share) * records + self.byte_share * size / self.record_bytes


def load_costs(writer: str, file: Path | None = None) -> BatchCosts:
    """The costs of a writer.

    Args:
        writer: `json`, `cow` or `mor`.
        file: what the benchmark `batch_times` or `ingest` wrote; None: an `ingest` that comes with this package.

    Raises:
        ValueError: the file has nothing of that writer, or is something else.
    """
    text = (file or files("lakestream_bench.simulation") / "ingest.json").read_text("utf-8")
    try:
        figures: dict[str, Any] = json.loads(text)
        return _of_batch_times(writer, figures) if "writers" in figures else _of_ingest(writer, figures)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(
            f"{file or 'ingest.json'} has no costs of a writer {writer!r}: {error!r}. "
            "Give a file that `python -m lakestream_bench batch_times` or `ingest` wrote."
        ) from error


def _of_batch_times(writer: str, figures: dict[str, Any]) -> BatchCosts:
    """Lines through many batches of different sizes."""
    found = figures["writers"][writer]
    batches = found["batches"]
    # A line through noisy points may start a little below zero.
    prepare, finish = (
        StageCost(max(0.0, line["fixed"]), line["per_record"], line["residual"], line["r2"])
        for line in (found["prepare"], found["finish"])
    )
    source = f"{len(batches)} batches on {figures['cores']} cores, {figures['measured_at']}"
    size = sum(batch["bytes"] for batch in batches) / sum(batch["records"] for batch in batches)
    return BatchCosts(writer, prepare, finish, source, size)


def _of_ingest(writer: str, figures: dict[str, Any]) -> BatchCosts:
    """A line through two points: a backlog, in which what is fixed is hidden, and small batches at the tip.

    Both are divided among the stages as the backlog's seconds are.
    """
    backlog, steady, cores = figures["backlog"][writer], figures["steady"][writer], figures["cores"]
    per_record = cores / backlog["rows_per_second"]
    records = steady["records_per_second"] * _STEADY_SECONDS / steady["batches"]
    fixed = max(0.0, steady["batch_seconds"] - per_record * records)
    seconds = backlog["stage_seconds"]
    share = (seconds["plan"] + seconds["fetch"]) / sum(seconds.values())
    prepare, finish = (StageCost(part * fixed, part * per_record, _ASSUMED_RESIDUAL) for part in (share, 1 - share))
    return BatchCosts(
        writer, prepare, finish, f"a backlog and a steady minute on {cores} cores, {figures['measured_at']}"
    )


_STEADY_SECONDS = 60.0
"""The length of the benchmark's steady load."""


_SLOW, _SLOWNESS = 0.02, 1.5
"""Share of the batches that are slower by a factor."""


def mean_noise(costs: BatchCosts) -> float:
    """What batches cost in the mean, through what the line says."""
    spread = _spread(costs)
    return math.exp(spread * spread / 2) * (1 + _SLOW * (_SLOWNESS - 1))


def _spread(costs: BatchCosts) -> float:
    return min(0.3, max(0.05, (costs.prepare.residual + costs.finish.residual) / 2))


def noise(seed: int, costs: BatchCosts, count: int = 8192) -> NDArray[np.float64]:
    """Factors on a batch's cost: as far apart as those measured, and one in fifty half as slow again."""
    rng = np.random.default_rng(seed + 1)
    spread = _spread(costs)
    slow = np.where(rng.random(count) < _SLOW, _SLOWNESS, 1.0)
    return np.exp(spread * rng.standard_normal(count)) * slow
