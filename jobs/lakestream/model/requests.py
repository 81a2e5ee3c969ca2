"""What somebody has asked to be taken into the table beside the stream, as part of the batches.

Each request names files, or parts of them, in order; or a span of the stream. Batches take these in that order, as they
take a shard's records: every plan and commit says how far they are, so what batches take tiles the request, and nothing
is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_count, require_utc, required_time, time_from_json, time_to_json
from lakestream.model.cursors import Cursor, cursor_from_row, cursor_to_row
from lakestream.model.files import FileEntry
from lakestream.model.ranges import Loss, ShardRange
from lakestream.model.trim import Trim


class Format(StrEnum):
    """What a file holds."""

    JSON = "json"
    """A JSON object in each line."""
    JSON_GZIP = "json.gz"
    JSON_ZSTD = "json.zst"
    PARQUET = "parquet"

    @property
    def codec(self) -> str | None:
        """Arrow's name for what has compressed the whole file; None: nothing has."""
        return {Format.JSON_GZIP: "gzip", Format.JSON_ZSTD: "zstd"}.get(self)


@dataclass(frozen=True, slots=True)
class FilePart:
    """Part of a file from outside of the lake: so much of it that a task can read it."""

    path: str
    """Whole: of a folder, or `s3a://bucket/key`."""
    format: Format
    start: int
    """Of Parquet a row, of JSON lines a byte. A line belongs to the part in which it begins."""
    end: int
    """Exclusive. A compressed file is one part, with as many bytes as it has compressed."""
    rows: int
    """Of JSON lines an estimate, which bounds the batch."""
    bytes: int
    """As stored."""
    etag: str
    """Of the file. One that has another by now is another file, and is not read."""
    modified: datetime
    """When the file was written, by its store; its records are said to have arrived then."""
    folders: tuple[tuple[str, str], ...] = ()
    """Columns and their values that the names of its folders tell, as text."""
    is_table: bool = False
    """Its rows are those of a table, as they stand there. Otherwise they are events."""

    def __post_init__(self) -> None:
        for name in ("start", "end", "rows", "bytes"):
            require_count(name, getattr(self, name))
        require_utc("modified", self.modified)
        if not self.start < self.end:
            raise InvalidValueError(f"{self.path}: the part from {self.start} to {self.end} is empty")

    def __str__(self) -> str:
        return f"{self.path} {self.start}-{self.end}"

    def to_row(self) -> list[Any]:
        return [
            self.path,
            self.format.value,
            self.start,
            self.end,
            self.rows,
            self.bytes,
            self.etag,
            time_to_json(self.modified),
            self.folders,
            self.is_table,
        ]

    @classmethod
    def from_row(cls, row: list[Any]) -> FilePart:
        path, kind, start, end, rows, size, etag, modified, folders, is_table = row
        values = tuple((name, value) for name, value in folders)
        return cls(path, Format(kind), start, end, rows, size, etag, required_time(modified), values, bool(is_table))


Part: TypeAlias = FileEntry | FilePart
"""A file of the quarantine, or part of one from outside."""

Piece: TypeAlias = Part | ShardRange
"""What a task reads of a request."""


@dataclass(frozen=True, slots=True)
class Span:
    """Part of the stream, by arrival times: of each shard, what lies between the first record that arrived at `since`
    or later and the first one that arrived at `until` or later. So spans that touch in time touch in each shard."""

    since: datetime
    until: datetime
    """Exclusive."""

    def __post_init__(self) -> None:
        require_utc("since", self.since)
        require_utc("until", self.until)
        if not self.since < self.until:
            raise InvalidValueError(f"the span from {self.since.isoformat()} to {self.until.isoformat()} is empty")

    def __str__(self) -> str:
        return f"{self.since:%Y-%m-%d %H:%M:%S} to {self.until:%Y-%m-%d %H:%M:%S} UTC"

    def overlaps(self, other: Span) -> bool:
        return self.since < other.until and other.since < self.until

    def to_row(self) -> list[str | None]:
        return [time_to_json(self.since), time_to_json(self.until)]

    @classmethod
    def from_row(cls, row: list[str]) -> Span:
        since, until = row
        return cls(required_time(since), required_time(until))


@dataclass(frozen=True, slots=True)
class SpanProgress:
    """How far a span is read."""

    cursors: tuple[Cursor, ...] = ()
    """Of all shards, apart from those of the stream; a shard is finished once it has nothing more of the span. None: it
    is not begun, or read."""
    trim: Trim | None = None
    """What the stream may have trimmed by then."""
    reached: datetime | None = None
    """Arrival time up to which the newest batch has taken it."""
    lost: tuple[Loss, ...] = ()
    """What may have been trimmed before it was read. Of what readers have found, only commits know."""
    records: int = 0
    """So many are taken. Only commits know."""
    failed: bool = False
    """It ends here, for records were lost, and may not be skipped."""

    def __post_init__(self) -> None:
        require_count("records", self.records)
        require_utc("reached", self.reached)

    def behind(self, before: SpanProgress | None, records: int, losses: tuple[Loss, ...]) -> SpanProgress:
        """With what only commits know.

        Args:
            before: in the commit before; None: that is of another request.
            records: of the batch.
            losses: likewise.
        """
        known = before or SpanProgress()
        lost = tuple(dict.fromkeys((*known.lost, *self.lost, *losses)))
        return replace(self, lost=lost, records=known.records + records)

    def to_fields(self) -> dict[str, Any]:
        return {
            "cursors": [cursor_to_row(cursor) for cursor in self.cursors],
            "trim": self.trim and self.trim.to_row(),
            "reached": time_to_json(self.reached),
            "lost": [loss.to_row() for loss in self.lost],
            "records": self.records,
            "failed": self.failed,
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SpanProgress:
        return cls(
            cursors=tuple(cursor_from_row(row) for row in fields["cursors"]),
            trim=Trim.from_row(row) if (row := fields["trim"]) else None,
            reached=time_from_json(fields["reached"]),
            lost=tuple(Loss.from_row(row) for row in fields["lost"]),
            records=fields["records"],
            failed=fields["failed"],
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """How far the requests are carried out: everything before is part of a batch."""

    request: int
    """Number of the newest that was begun, from 1; those before are done."""
    parts: int
    """So many of its parts are taken, from the first."""
    of: int
    """So many are to be taken: all that it has, unless it was cancelled. A span is one."""
    span: SpanProgress | None = None
    """How far its span is read, if it is one that was begun."""

    def __post_init__(self) -> None:
        require_count("parts", self.parts)
        if self.request < 1 or self.parts > self.of:
            raise InvalidValueError(f"request {self.request}: {self.parts} of {self.of} parts cannot be taken")

    @property
    def is_done(self) -> bool:
        return self.parts == self.of

    @property
    def is_in_span(self) -> bool:
        """Whether a span is read to somewhere in its middle."""
        return self.span is not None and not self.is_done

    def behind(self, before: Taken | None, records: int, losses: tuple[Loss, ...]) -> Taken:
        """With what only commits know, as `SpanProgress.behind`."""
        if self.span is None:
            return self
        known = before.span if before is not None and before.request == self.request else None
        return replace(self, span=self.span.behind(known, records, losses))

    def to_fields(self) -> dict[str, Any]:
        """Fields of a plan or commit."""
        row = [self.request, self.parts, self.of]
        return {"readmitted": row, **({"span": self.span.to_fields()} if self.span else {})}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Taken | None:
        """The inverse of `to_fields`; None: they say nothing."""
        if not (row := fields.get("readmitted")):
            return None
        request, parts, of = row
        return cls(request, parts, of, SpanProgress.from_fields(span) if (span := fields.get("span")) else None)


@dataclass(frozen=True, slots=True)
class Portion:
    """What the next batch takes of a request."""

    tasks: tuple[tuple[Piece, ...], ...]
    """By the task that reads them; all of one kind. None: the request is cancelled, or nothing is left of it."""
    taken: Taken
    """How far the request is with that batch."""


@dataclass(frozen=True, slots=True)
class SpanDue:
    """A request for a span, of which the next batch may take something: what that is, the stream has to be asked."""

    request: int
    span: Span
    progress: SpanProgress | None
    """None: it is not begun."""


def version_of(backfills: bool, taken: Taken | None, *, spans: bool) -> int:
    """Of the JSON of a plan or commit: the lowest whose readers understand it.

    A release that knows nothing of requests would forget what is taken, and the next one take it twice. One that knows
    requests for the quarantine alone, or for files as well, has to leave a batch of what else there is to a newer one,
    and so the next batches as long as a span is read in part.
    """
    if spans or (taken is not None and taken.is_in_span):
        return 4
    return 3 if backfills else 2 if taken else 1
