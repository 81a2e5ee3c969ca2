"""What a stream may have trimmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_utc, required_time, time_to_json


@dataclass(frozen=True, slots=True)
class Trim:
    """What was known of it at a plan. Part of plans and commits, for what was trimmed stays trimmed: a retention that
    is raised while no driver runs would otherwise hide what was lost under the one before."""

    retention: timedelta
    """Of the stream."""
    floor: datetime
    """Records that arrived before this time may be gone."""

    def __post_init__(self) -> None:
        require_utc("floor", self.floor)
        if self.retention <= timedelta(0):
            raise InvalidValueError(f"retention must be positive, got {self.retention}")

    def to_row(self) -> list[Any]:
        return [self.retention.total_seconds(), time_to_json(self.floor)]

    @classmethod
    def from_row(cls, row: list[Any]) -> Trim:
        seconds, floor = row
        return cls(timedelta(seconds=seconds), required_time(floor))
