"""The run over time: `history.json`, from which the report draws. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Self

import orjson

from lakestream_demo.observed import Observed

SPACING_SECONDS = 1.0
"""At least so long between two moments that are kept: a run of an hour has to fit into a page."""


@dataclass(frozen=True)
class WriterMoment:
    """What one writer had published."""

    records: int
    """Records read, in committed batches."""
    backlog: int
    """Records in the stream that it had not made visible."""
    lag_seconds: float | None
    """Age of what it had read last, 0 at the tip; None before its first batch."""


@dataclass(frozen=True)
class Moment:
    """The pipeline at one time."""

    seconds: float
    """Since the watch began."""
    records: int
    """Records that the stream had taken."""
    throttled: int
    """Records refused for a shard's limit, each as often as it was sent."""
    writers: Mapping[str, WriterMoment]

    @classmethod
    def of(cls, seen: Observed, seconds: float) -> Self:
        """What to keep of an observation."""
        writers = {
            writer.name: WriterMoment(writer.records, seen.backlog(writer), seen.lag(writer)) for writer in seen.writers
        }
        return cls(round(seconds, 3), seen.stream.records, seen.stream.throttled, writers)


@dataclass(frozen=True)
class History:
    """All moments, in order, and when the load was on."""

    began_at: datetime
    """When the watch began, which is with the warm-up."""
    load_began: float
    """Seconds since then."""
    load_ended: float
    moments: tuple[Moment, ...]

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_APPEND_NEWLINE)


def per_second(points: Sequence[tuple[float, float]], window: float) -> list[tuple[float, float]]:
    """Rates of a counter at each time after the first, over the seconds before it.

    Args:
        points: time in seconds and count, in order.
        window: seconds, less where the counter began later.
    """
    rates = []
    first = 0
    for time, count in points[1:]:
        while points[first + 1][0] <= time - window:
            first += 1
        before, had = points[first]
        rates.append((time, (count - had) / (time - before)))
    return rates
