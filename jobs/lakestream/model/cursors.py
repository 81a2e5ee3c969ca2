"""How far each shard has been taken: one cursor per shard, part of every plan and commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_utc, required_time, time_from_json, time_to_json
from lakestream.model.ranges import Position


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started: a parent of the shard is not finished yet."""

    shard_id: str
    since: datetime | None
    """Start at the first record that arrived at or after this time; None: at TRIM_HORIZON."""
    unread_since: datetime
    """No unread record arrived before this time: once the stream retains less, there may be data loss."""

    def __post_init__(self) -> None:
        require_utc("since", self.since)
        require_utc("unread_since", self.unread_since)


@dataclass(frozen=True, slots=True)
class Unpinned:
    """Started, but no record has been seen yet, so the place is known as a time only."""

    shard_id: str
    since: datetime | None
    """As in `Waiting`."""
    unread_since: datetime
    """As in `Waiting`; moves on each time the shard is seen to be empty."""

    def __post_init__(self) -> None:
        require_utc("since", self.since)
        require_utc("unread_since", self.unread_since)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything before `position` belongs to this batch or an earlier one."""

    shard_id: str
    position: Position
    arrival: datetime
    """Arrival time of the unread record at the position (`at`), or of the last one read (`after`)."""
    tip_seen: datetime | None
    """Kinesis time at which nothing was last seen behind the position; None: never, or it is `at` a record."""

    def __post_init__(self) -> None:
        require_utc("arrival", self.arrival)
        require_utc("tip_seen", self.tip_seen)
        if self.tip_seen is not None and not self.position.after:
            raise InvalidValueError(
                f"{self.shard_id}: an unread record is known at {self.position}, so it is not the tip"
            )

    @property
    def unread_since(self) -> datetime:
        """As in `Waiting`."""
        return self.arrival if self.tip_seen is None else max(self.arrival, self.tip_seen)


@dataclass(frozen=True, slots=True)
class Finished:
    """A closed shard that was read to its end. Kept until ListShards drops the shard."""

    shard_id: str


Cursor: TypeAlias = Waiting | Unpinned | Reading | Finished


def cursor_to_row(cursor: Cursor) -> list[Any]:
    """A short array: shard, kind, and the kind's fields."""
    match cursor:
        case Waiting(shard_id, since, unread_since):
            return [shard_id, "waiting", time_to_json(since), time_to_json(unread_since)]
        case Unpinned(shard_id, since, unread_since):
            return [shard_id, "unpinned", time_to_json(since), time_to_json(unread_since)]
        case Reading(shard_id, position, arrival, tip_seen):
            return [shard_id, "reading", str(position), time_to_json(arrival), time_to_json(tip_seen)]
        case Finished(shard_id):
            return [shard_id, "finished"]


def cursor_from_row(row: list[Any]) -> Cursor:
    match row:
        case [shard_id, "waiting", since, unread_since]:
            return Waiting(shard_id, time_from_json(since), required_time(unread_since))
        case [shard_id, "unpinned", since, unread_since]:
            return Unpinned(shard_id, time_from_json(since), required_time(unread_since))
        case [shard_id, "reading", position, arrival, tip_seen]:
            return Reading(shard_id, Position.parse(position), required_time(arrival), time_from_json(tip_seen))
        case [shard_id, "finished"]:
            return Finished(shard_id)
    raise InvalidValueError(f"not a cursor: {row!r}")
