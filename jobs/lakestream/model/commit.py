"""What a batch did, written once it is visible in the sink."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import repeat
from typing import Any

from lakestream.errors import InvalidValueError
from lakestream.model.codec import (
    FILTERED,
    decode,
    encode,
    require_count,
    require_text,
    require_utc,
    required_time,
    time_from_json,
    time_to_json,
)
from lakestream.model.cursors import Cursor, cursor_from_row, cursor_to_row
from lakestream.model.files import FileEntry
from lakestream.model.findings import Finding
from lakestream.model.plan import BatchPlan, require_sorted
from lakestream.model.ranges import Loss
from lakestream.model.requests import Taken, version_of
from lakestream.model.restore import Restore
from lakestream.model.trim import Trim

TABLE_SERVICES = "wait"
"""Stage of a sink in which a batch waits for compaction or cleaning; apart from it, its time is what writing costs."""
PAUSE = "pause"
"""Stage of a sink in which a batch waits on purpose, as compaction fails."""


@dataclass(frozen=True, slots=True)
class SinkCommit:
    """What a sink made visible for one batch."""

    rows: int
    bytes: int
    files: tuple[FileEntry, ...] = ()
    """Manifest of the batch; empty where the sink keeps its own (Hudi's timeline)."""
    instant: str | None = None
    """Hudi's instant time of the commit; None for other sinks, or if nothing had to be written."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time by stage of the sink, in seconds."""
    file_groups: int | None = None
    """Hudi's file groups that the batch touched, each written by one task; None for other sinks."""

    def __post_init__(self) -> None:
        require_count("rows", self.rows)
        require_count("bytes", self.bytes)

    def to_fields(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "files": [entry.to_row() for entry in self.files],
            "instant": self.instant,
            "seconds": dict(self.seconds),
            **({} if self.file_groups is None else {"fileGroups": self.file_groups}),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SinkCommit:
        return cls(
            rows=fields["rows"],
            bytes=fields["bytes"],
            files=tuple(FileEntry.from_row(row) for row in fields["files"]),
            instant=fields["instant"],
            seconds=fields["seconds"],
            file_groups=fields.get("fileGroups"),
        )


@dataclass(frozen=True, slots=True)
class ShardStats:
    """What one shard gave to a batch."""

    shard_id: str
    records: int
    """User records, after KPL de-aggregation."""
    bytes: int
    """Their data, without partition keys."""
    first_arrival: datetime
    last_arrival: datetime
    kinesis_records: int | None = None
    """As Kinesis counts them, a KPL aggregate as one. None: as many as `records`."""
    kinesis_bytes: int | None = None
    """As Kinesis counts them, with partition keys, an aggregate as a whole. None: an earlier release did not tell."""
    filtered: int = 0
    """How many of the user records `spec.filter` left out."""

    def __post_init__(self) -> None:
        require_count("records", self.records)
        require_count("bytes", self.bytes)
        require_count("kinesis_records", self.kinesis_records or 0)
        require_count("kinesis_bytes", self.kinesis_bytes or 0)
        require_count("filtered", self.filtered)
        require_utc("first_arrival", self.first_arrival)
        require_utc("last_arrival", self.last_arrival)

    @property
    def taken(self) -> int:
        return self.records - self.filtered

    @property
    def stored_bytes(self) -> int:
        """What the limits of shards go by, as well as it is known."""
        return self.bytes if self.kinesis_bytes is None else self.kinesis_bytes

    def to_row(self) -> list[Any]:
        return [
            self.shard_id,
            self.records,
            self.bytes,
            time_to_json(self.first_arrival),
            time_to_json(self.last_arrival),
        ]

    @classmethod
    def from_row(
        cls, row: list[Any], kinesis_records: int | None, kinesis_bytes: int | None, filtered: int
    ) -> ShardStats:
        shard_id, records, size, first, last = row
        arrivals = required_time(first), required_time(last)
        return cls(shard_id, records, size, *arrivals, kinesis_records, kinesis_bytes, filtered)


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """The last word on a batch: it is visible, exactly once, and `cursors` is where the next one starts."""

    batch: int
    epoch: int
    """Epoch of the driver that committed; a replayed batch may have been planned by an earlier one."""
    planned_at: datetime
    """Kinesis time of the planning."""
    committed_at: datetime
    """Driver's time of the commit."""
    base: datetime | None
    """As in the plan."""
    horizon: datetime
    """As in the plan."""
    caught_up: bool
    """As in the plan."""
    records: int
    """User records read, after KPL de-aggregation."""
    bytes: int
    """Their data, without partition keys."""
    quarantined: int
    """How many of the records were kept in quarantine instead of going to the sink."""
    sink: SinkCommit | None
    """None for a heartbeat."""
    cursors: tuple[Cursor, ...]
    """The plan's cursors."""
    shards: tuple[ShardStats, ...] = ()
    """Shards that gave records, sorted."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time by stage of the engine, in seconds."""
    losses: tuple[Loss, ...] = ()
    """The plan's, and behind them, by shard, what was trimmed between planning and reading. Never less than the sink
    lacks; more, if a batch that was visible already was read again for its commit."""
    trim: Trim | None = None
    """As in the plan."""
    rejects: tuple[FileEntry, ...] = ()
    """The objects in quarantine; none in commits of releases that did not keep them."""
    misplaced: int = 0
    """User records of KPL aggregates that were left out, since they belong to other shards than the one they were read
    from: their producer sent them again. Not among `records`."""
    rejected_by: str = ""
    """Digest of the definition by which the records in `rejects` are unusable; empty: there are none, or a release that
    did not keep it has committed."""
    readmits: tuple[str, ...] = ()
    """Paths of the files in quarantine whose records are `records`: they are in the table now, or in `rejects`. Of a
    restore, those whose records are read again from the stream."""
    backfills: tuple[str, ...] = ()
    """The parts of other files, each with its path, whose records are `records`."""
    of_span: bool = False
    """Whether `records` are of a span, which was asked for."""
    taken: Taken | None = None
    """As in the plan, and what only commits know of a span."""
    ends_request: bool = False
    """As in the plan."""
    read_from: datetime | None = None
    """As in the plan."""
    restore: Restore | None = None
    """As in the plan."""
    is_filtered: bool = False
    """As in the plan."""

    def __post_init__(self) -> None:
        for name in ("batch", "epoch", "records", "bytes", "quarantined", "misplaced"):
            require_count(name, getattr(self, name))
        for name in ("planned_at", "committed_at", "base", "horizon", "read_from"):
            require_utc(name, getattr(self, name))
        require_text("readmits", *self.readmits)
        if self.quarantined > (taken := self.records - self.filtered):
            raise InvalidValueError(f"batch {self.batch}: {self.quarantined} of {taken} records quarantined")
        require_sorted(f"batch {self.batch}: cursors", [c.shard_id for c in self.cursors])
        require_sorted(f"batch {self.batch}: shards", [s.shard_id for s in self.shards])

    @classmethod
    def of(
        cls,
        plan: BatchPlan,
        *,
        epoch: int,
        committed_at: datetime,
        sink: SinkCommit | None = None,
        quarantined: int = 0,
        rejects: tuple[FileEntry, ...] = (),
        shards: tuple[ShardStats, ...] = (),
        seconds: Mapping[str, float] | None = None,
    ) -> BatchCommit:
        """The commit of a plan; records and bytes are the sums over the shards."""
        return cls(
            batch=plan.batch,
            epoch=epoch,
            planned_at=plan.planned_at,
            committed_at=committed_at,
            base=plan.base,
            horizon=plan.horizon,
            caught_up=plan.caught_up,
            records=sum(s.records for s in shards),
            bytes=sum(s.bytes for s in shards),
            quarantined=quarantined,
            sink=sink,
            cursors=plan.cursors,
            shards=shards,
            seconds=seconds or {},
            losses=plan.losses,
            trim=plan.trim,
            rejects=rejects,
            readmits=tuple(entry.path for task in plan.readmits for entry in task),
            backfills=tuple(str(part) for task in plan.backfills for part in task),
            of_span=bool(plan.spans),
            taken=plan.taken,
            ends_request=plan.ends_request,
            read_from=plan.read_from,
            restore=plan.restore,
            is_filtered=plan.is_filtered,
        )

    def finding(self, findings: Iterable[Finding]) -> BatchCommit:
        """The commit with what reading found, one finding a shard."""
        found = tuple(findings)
        losses = self.losses + tuple(loss for finding in found for loss in finding.losses)
        return replace(self, losses=losses, misplaced=sum(finding.misplaced for finding in found))

    def behind(self, before: BatchCommit | None) -> BatchCommit:
        """The commit with what only commits know of a request.

        Args:
            before: the commit before; None: there is none.
        """
        if self.taken is None:
            return self
        own = (self.records, self.losses) if self.of_span else (0, ())
        return replace(self, taken=self.taken.behind(before.taken if before else None, *own))

    @property
    def is_requested(self) -> bool:
        """Whether its records, if any, are not those that the stream gives next: somebody has asked for the batch."""
        return bool(self.readmits or self.backfills or self.restore) or self.of_span or self.ends_request

    @property
    def kinesis_records(self) -> int:
        """Records read as Kinesis counts them, a KPL aggregate as one."""
        return sum(s.records if s.kinesis_records is None else s.kinesis_records for s in self.shards)

    @property
    def kinesis_bytes(self) -> int:
        """Bytes read as Kinesis counts them."""
        return sum(s.stored_bytes for s in self.shards)

    @property
    def filtered(self) -> int:
        """How many of the records were left out by `spec.filter`."""
        return sum(s.filtered for s in self.shards)

    @property
    def rows_written(self) -> int:
        """Rows that the sink made visible; deletes and duplicates within the batch make it differ from `records`."""
        return 0 if self.sink is None else self.sink.rows

    def to_json(self) -> builtins.bytes:
        # Apart from the shards' rows, which earlier releases read as well; and only where they tell something.
        as_stored = {
            "kinesisRecords": [s.kinesis_records for s in self.shards],
            "kinesisBytes": [s.kinesis_bytes for s in self.shards],
        }
        return encode(
            "commit",
            {
                "batch": self.batch,
                "epoch": self.epoch,
                "plannedAt": time_to_json(self.planned_at),
                "committedAt": time_to_json(self.committed_at),
                "base": time_to_json(self.base),
                "horizon": time_to_json(self.horizon),
                "caughtUp": self.caught_up,
                "records": self.records,
                "bytes": self.bytes,
                "quarantined": self.quarantined,
                "sink": None if self.sink is None else self.sink.to_fields(),
                "cursors": [cursor_to_row(c) for c in self.cursors],
                "shards": [s.to_row() for s in self.shards],
                "seconds": dict(self.seconds),
                "losses": [loss.to_row() for loss in self.losses],
                "trim": self.trim and self.trim.to_row(),
                "rejects": [entry.to_row() for entry in self.rejects],
                "misplaced": self.misplaced,
                **{name: told for name, told in as_stored.items() if set(told) - {None}},
                **({"filtered": [s.filtered for s in self.shards]} if self.filtered else {}),
                **({"rejectedBy": self.rejected_by} if self.rejected_by else {}),
                **({"readmits": self.readmits} if self.readmits else {}),
                **({"backfills": self.backfills} if self.backfills else {}),
                **({"ofSpan": True} if self.of_span else {}),
                **({"endsRequest": True} if self.ends_request else {}),
                **({"readFrom": time_to_json(self.read_from)} if self.read_from else {}),
                **(self.taken.to_fields() if self.taken else {}),
                **({"restore": self.restore.to_row()} if self.restore else {}),
                **({"isFiltered": True} if self.is_filtered else {}),
            },
            version=FILTERED if self.is_filtered else version_of(bool(self.backfills), self.taken, spans=self.of_span),
        )

    @classmethod
    def from_json(cls, content: builtins.bytes) -> BatchCommit:
        """Raises CorruptLogError if the content is not a commit that `to_json` wrote."""

        def build(fields: dict[str, Any]) -> BatchCommit:
            return cls(
                batch=fields["batch"],
                epoch=fields["epoch"],
                planned_at=required_time(fields["plannedAt"]),
                committed_at=required_time(fields["committedAt"]),
                base=time_from_json(fields["base"]),
                horizon=required_time(fields["horizon"]),
                caught_up=fields["caughtUp"],
                records=fields["records"],
                bytes=fields["bytes"],
                quarantined=fields["quarantined"],
                sink=None if fields["sink"] is None else SinkCommit.from_fields(fields["sink"]),
                cursors=tuple(cursor_from_row(row) for row in fields["cursors"]),
                shards=tuple(
                    ShardStats.from_row(*row)
                    for row in zip(
                        fields["shards"],
                        fields.get("kinesisRecords") or repeat(None, len(fields["shards"])),
                        fields.get("kinesisBytes") or repeat(None, len(fields["shards"])),
                        fields.get("filtered") or repeat(0, len(fields["shards"])),
                        strict=True,
                    )
                ),
                seconds=fields["seconds"],
                losses=tuple(Loss.from_row(row) for row in fields["losses"]),
                trim=Trim.from_row(row) if (row := fields.get("trim")) else None,
                misplaced=fields.get("misplaced", 0),
                rejects=tuple(FileEntry.from_row(row) for row in fields.get("rejects", ())),
                rejected_by=fields.get("rejectedBy", ""),
                readmits=tuple(fields.get("readmits", ())),
                backfills=tuple(fields.get("backfills", ())),
                of_span=fields.get("ofSpan", False),
                taken=Taken.from_fields(fields),
                ends_request=fields.get("endsRequest", False),
                read_from=time_from_json(fields.get("readFrom")),
                restore=Restore.from_row(row) if (row := fields.get("restore")) else None,
                is_filtered=fields.get("isFiltered", False),
            )

        return decode("commit", content, build)
