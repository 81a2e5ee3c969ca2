"""A batch, fixed before it is read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakestream.errors import InvalidValueError
from lakestream.model.codec import (
    FILTERED,
    OF_OTHERS,
    OF_TEXTS,
    decode,
    encode,
    require_count,
    require_utc,
    required_time,
    time_from_json,
    time_to_json,
)
from lakestream.model.cursors import Cursor, Reading, cursor_from_row, cursor_to_row
from lakestream.model.definition import Definition, RecordFormat
from lakestream.model.files import FileEntry
from lakestream.model.ranges import Loss, ShardRange
from lakestream.model.requests import FilePart, Piece, Taken, version_of
from lakestream.model.restore import Restore
from lakestream.model.trim import Trim

_OF_FORMATS = {RecordFormat.TEXT: OF_TEXTS, RecordFormat.AVRO: OF_OTHERS, RecordFormat.JSONL: OF_OTHERS}


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The ranges of one batch, and where every shard stands once it is committed.

    Written to the log before anything is read, so that whoever repeats the batch reads the same
    records. Instead of ranges it may have parts of files, or of the stream, which somebody has asked for. Or it takes
    the table back to an earlier batch. With none of these it is a heartbeat: it only carries the cursors on.
    """

    batch: int
    """From 0, without gaps."""
    epoch: int
    """Epoch of the driver that made the plan."""
    planned_at: datetime
    """Kinesis time of the planning; the driver's, if it has parts."""
    base: datetime | None
    """Arrival time of the earliest first record of the ranges; None in a heartbeat."""
    horizon: datetime
    """Bound of admission, an arrival time: the batch takes what arrived before it."""
    caught_up: bool
    """With this batch, everything that had arrived in the stream before the horizon is taken, and the horizon was
    not held back by the batch's limits."""
    ranges: tuple[ShardRange, ...]
    """At most one per shard, sorted by shard."""
    cursors: tuple[Cursor, ...]
    """All known shards after this batch, sorted by shard."""
    losses: tuple[Loss, ...] = ()
    """What was skipped since `onDataLoss: skip` allows it."""
    trim: Trim | None = None
    """What the stream may have trimmed by then; None: written by a release that did not keep it."""
    definition: Definition | None = None
    """What its records become; None: written by a release that did not keep it."""
    parts: tuple[tuple[Piece, ...], ...] = ()
    """What the batch takes of a request, by the task that reads it; all of one kind."""
    taken: Taken | None = None
    """How far the requests are with this batch; None: there has been none."""
    ends_request: bool = False
    """It is of a request, of which it takes nothing: there was nothing left, or no more is to be taken."""
    read_from: datetime | None = None
    """The writer takes of each shard what lies behind the first record that arrived at this time or later, which is the
    first of all; None: nobody knows, for a release has begun the log that did not keep it."""
    restore: Restore | None = None
    """What it does in place of adding rows."""

    def __post_init__(self) -> None:
        require_count("batch", self.batch)
        require_count("epoch", self.epoch)
        require_utc("planned_at", self.planned_at)
        require_utc("base", self.base)
        require_utc("horizon", self.horizon)
        require_utc("read_from", self.read_from)
        if (self.base is None) != (not self.ranges):
            raise InvalidValueError(f"batch {self.batch}: a base is given exactly when there are ranges")
        if self.is_requested and (self.ranges or self.taken is None):
            raise InvalidValueError(f"batch {self.batch}: it is of a request, so it names that, and has no ranges")
        if self.restore is not None and (self.ranges or self.is_requested):
            raise InvalidValueError(f"batch {self.batch}: a restore reads nothing")
        if len({type(part) for task in self.parts for part in task}) > 1:
            raise InvalidValueError(f"batch {self.batch}: its parts are of two kinds")
        require_sorted(f"batch {self.batch}: ranges", [r.shard_id for r in self.ranges])
        require_sorted(f"batch {self.batch}: cursors", [c.shard_id for c in self.cursors])
        self._require_ends_are_cursors()
        tasks = {r.task for r in self.ranges}
        if tasks != set(range(len(tasks))):
            raise InvalidValueError(
                f"batch {self.batch}: tasks must be numbered from 0 without gaps, got {sorted(tasks)}"
            )

    def _require_ends_are_cursors(self) -> None:
        positions = {c.shard_id: c.position for c in self.cursors if isinstance(c, Reading)}
        for piece in self.ranges:
            if not piece.closes_shard and positions.get(piece.shard_id) != piece.end:
                raise InvalidValueError(
                    f"batch {self.batch}: the range of {piece.shard_id} ends {piece.end}, "
                    f"its cursor stands {positions.get(piece.shard_id)}"
                )

    @property
    def is_heartbeat(self) -> bool:
        return not self.ranges and not self.parts and self.restore is None

    @property
    def is_requested(self) -> bool:
        """Whether it takes nothing of the stream: somebody has asked for it."""
        return bool(self.parts) or self.ends_request

    @property
    def readmits(self) -> tuple[tuple[FileEntry, ...], ...]:
        """The files of the quarantine among the parts, by task."""
        found = (tuple(part for part in task if isinstance(part, FileEntry)) for task in self.parts)
        return tuple(task for task in found if task)

    @property
    def backfills(self) -> tuple[tuple[FilePart, ...], ...]:
        """The parts of other files, by task."""
        found = (tuple(part for part in task if isinstance(part, FilePart)) for task in self.parts)
        return tuple(task for task in found if task)

    @property
    def spans(self) -> tuple[tuple[ShardRange, ...], ...]:
        """The ranges of a span among the parts, by task."""
        found = (tuple(part for part in task if isinstance(part, ShardRange)) for task in self.parts)
        return tuple(task for task in found if task)

    @property
    def tasks(self) -> tuple[tuple[ShardRange, ...], ...]:
        """The ranges by the task that reads them; the index is the task's number."""
        groups: list[list[ShardRange]] = [[] for _ in range(1 + max((r.task for r in self.ranges), default=-1))]
        for piece in self.ranges:
            groups[piece.task].append(piece)
        return tuple(tuple(group) for group in groups)

    def to_json(self) -> bytes:
        # Apart from the rows, which earlier releases read as well.
        hash_keys = [piece.hash_keys and piece.hash_keys.to_row() for piece in self.ranges]
        return encode(
            "plan",
            {
                "batch": self.batch,
                "epoch": self.epoch,
                "plannedAt": time_to_json(self.planned_at),
                "base": time_to_json(self.base),
                "horizon": time_to_json(self.horizon),
                "caughtUp": self.caught_up,
                "ranges": [r.to_row() for r in self.ranges],
                "cursors": [cursor_to_row(c) for c in self.cursors],
                "losses": [loss.to_row() for loss in self.losses],
                "trim": self.trim and self.trim.to_row(),
                "definition": self.definition and self.definition.to_fields(),
                **({"hashKeys": hash_keys} if any(hash_keys) else {}),
                **({"readmits": [[e.to_row() for e in task] for task in self.readmits]} if self.readmits else {}),
                **({"backfills": [[p.to_row() for p in task] for task in self.backfills]} if self.backfills else {}),
                **({"spans": [[_span_row(r) for r in task] for task in self.spans]} if self.spans else {}),
                **({"endsRequest": True} if self.ends_request else {}),
                **({"readFrom": time_to_json(self.read_from)} if self.read_from else {}),
                **(self.taken.to_fields() if self.taken else {}),
                **({"restore": self.restore.to_row()} if self.restore else {}),
            },
            version=self._version,
        )

    @property
    def is_filtered(self) -> bool:
        """Whether a filter is in force."""
        return self.definition is not None and bool(self.definition.filters)

    @property
    def _version(self) -> int:
        if self.definition is not None and self.definition.record_format in _OF_FORMATS:
            return _OF_FORMATS[self.definition.record_format]
        if self.is_filtered:
            return FILTERED
        if self.restore:
            return 5  # who knows no restore would move the cursors back, and leave the table as it is
        return version_of(bool(self.backfills), self.taken, spans=bool(self.spans))

    @classmethod
    def from_json(cls, content: bytes) -> BatchPlan:
        """Raises CorruptLogError if the content is not a plan that `to_json` wrote."""

        def build(fields: dict[str, Any]) -> BatchPlan:
            return cls(
                batch=fields["batch"],
                epoch=fields["epoch"],
                planned_at=required_time(fields["plannedAt"]),
                base=time_from_json(fields["base"]),
                horizon=required_time(fields["horizon"]),
                caught_up=fields["caughtUp"],
                ranges=tuple(
                    ShardRange.from_row(row, hash_keys)
                    for row, hash_keys in zip(
                        fields["ranges"],
                        fields.get("hashKeys") or itertools.repeat(None, len(fields["ranges"])),
                        strict=True,
                    )
                ),
                cursors=tuple(cursor_from_row(row) for row in fields["cursors"]),
                losses=tuple(Loss.from_row(row) for row in fields["losses"]),
                trim=Trim.from_row(row) if (row := fields.get("trim")) else None,
                definition=Definition.from_fields(found) if (found := fields.get("definition")) else None,
                parts=tuple(
                    tuple(map(from_row, task))
                    for name, from_row in (
                        ("readmits", FileEntry.from_row),
                        ("backfills", FilePart.from_row),
                        ("spans", _span_range),
                    )
                    for task in fields.get(name, ())
                ),
                taken=Taken.from_fields(fields),
                ends_request=fields.get("endsRequest", False),
                read_from=time_from_json(fields.get("readFrom")),
                restore=Restore.from_row(row) if (row := fields.get("restore")) else None,
            )

        return decode("plan", content, build)


def _span_row(piece: ShardRange) -> list[Any]:
    return [*piece.to_row(), piece.hash_keys and piece.hash_keys.to_row()]


def _span_range(row: list[Any]) -> ShardRange:
    *fields, hash_keys = row
    return ShardRange.from_row(fields, hash_keys)


def require_sorted(name: str, shard_ids: Sequence[str]) -> None:
    """Refuse duplicates and disorder: equal plans must have equal bytes."""
    for one, next_one in itertools.pairwise(shard_ids):
        if one >= next_one:
            raise InvalidValueError(f"{name} must be sorted by shard without duplicates: {one!r} precedes {next_one!r}")
