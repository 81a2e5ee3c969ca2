"""What somebody has asked to be taken into the table beside the stream, as part of the batches.

Each request names files, or parts of them, in order. Batches take these in that order, as they take a shard's records:
every plan and commit says how far they are, so what batches take tiles the request, and nothing is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_count, require_utc, required_time, time_to_json
from lakestream.model.files import FileEntry


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


@dataclass(frozen=True, slots=True)
class Taken:
    """How far the requests are carried out: everything before is part of a batch."""

    request: int
    """Number of the newest that was begun, from 1; those before are done."""
    parts: int
    """So many of its parts are taken, from the first."""
    of: int
    """So many are to be taken: all that it has, unless it was cancelled."""

    def __post_init__(self) -> None:
        require_count("parts", self.parts)
        if self.request < 1 or self.parts > self.of:
            raise InvalidValueError(f"request {self.request}: {self.parts} of {self.of} parts cannot be taken")

    @property
    def is_done(self) -> bool:
        return self.parts == self.of

    def to_row(self) -> list[int]:
        return [self.request, self.parts, self.of]

    @classmethod
    def from_row(cls, row: list[int]) -> Taken:
        request, parts, of = row
        return cls(request, parts, of)


@dataclass(frozen=True, slots=True)
class Portion:
    """What the next batch takes of a request."""

    tasks: tuple[tuple[Part, ...], ...]
    """By the task that reads them; all of one kind. None: the request is cancelled."""
    taken: Taken
    """How far the request is with that batch."""


def version_of(backfills: bool, taken: Taken | None) -> int:
    """Of the JSON of a plan or commit: the lowest whose readers understand it.

    A release that knows nothing of requests would forget what is taken, and the next one take it twice. One that knows
    requests for the quarantine alone has to leave a batch of other files to a newer one.
    """
    return 3 if backfills else 2 if taken else 1
