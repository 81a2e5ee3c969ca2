"""Objects that batches write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakestream.model.codec import require_count, require_text


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One object that a sink wrote."""

    path: str
    """Relative to the sink's path."""
    rows: int
    bytes: int
    """Size of the object as stored, compressed."""
    partition: str
    """Hive-style partition path (`dt=2026-01-31`), or "" without partitioning."""

    def __post_init__(self) -> None:
        require_count("rows", self.rows)
        require_count("bytes", self.bytes)
        require_text("path", self.path)
        require_text("partition", self.partition)

    def to_row(self) -> list[Any]:
        return [self.path, self.rows, self.bytes, self.partition]

    @classmethod
    def from_row(cls, row: list[Any]) -> FileEntry:
        path, rows, size, partition = row
        return cls(path, rows, size, partition)
