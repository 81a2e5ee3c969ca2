"""Records that were kept in quarantine and are read once more, as part of the batches.

Each request names files of the quarantine, in order. Batches take them in that order, as they take a shard's records:
every plan and commit says how far they are, so what batches take tiles the request, and no file is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_count
from lakestream.model.files import FileEntry


@dataclass(frozen=True, slots=True)
class Readmitted:
    """How far the requests are carried out: everything before is part of a batch."""

    request: int
    """Number of the newest that was begun, from 1; those before are done."""
    files: int
    """So many of its files are taken, from the first."""
    of: int
    """So many it has."""

    def __post_init__(self) -> None:
        require_count("files", self.files)
        if self.request < 1 or self.files > self.of:
            raise InvalidValueError(f"request {self.request}: {self.files} of {self.of} files cannot be taken")

    @property
    def is_done(self) -> bool:
        return self.files == self.of

    def to_row(self) -> list[int]:
        return [self.request, self.files, self.of]

    @classmethod
    def from_row(cls, row: list[int]) -> Readmitted:
        request, files, of = row
        return cls(request, files, of)


@dataclass(frozen=True, slots=True)
class Readmission:
    """What the next batch takes of a request."""

    tasks: tuple[tuple[FileEntry, ...], ...]
    """Files of the quarantine by the task that reads them."""
    until: Readmitted
    """How far the request is with that batch."""
