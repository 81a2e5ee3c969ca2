"""Taking the table back to how a batch has left it.

A restore is a batch of its own: its plan is fixed in the log before anything is undone, so that whoever comes after a
kill carries the same one out, and its cursors are those of the batch that it goes back to. The next plan begins there,
and so reads again what is undone, each record once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakestream.errors import InvalidValueError
from lakestream.model.codec import decode, encode, require_count, require_utc, required_time, time_to_json
from lakestream.model.cursors import Cursor, cursor_from_row, cursor_to_row
from lakestream.model.requests import Taken

if TYPE_CHECKING:
    from lakestream.model.commit import BatchCommit


@dataclass(frozen=True, slots=True)
class Restore:
    """What a batch does instead of adding rows."""

    request: int
    """Number of the request for work on the table that asked for it."""
    instant: str
    """Hudi's, of the commit that becomes the table's newest."""
    batch: int
    """The newest batch that stays. Those behind it are undone."""
    rereads: bool
    """Whether what the undone batches took is read again; otherwise it stays out of the table."""

    def __post_init__(self) -> None:
        require_count("batch", self.batch)
        if self.request < 1 or not self.instant:
            raise InvalidValueError(f"request {self.request}: a restore names the instant that it goes back to")

    def to_row(self) -> list[Any]:
        return [self.request, self.instant, self.batch, self.rereads]

    @classmethod
    def from_row(cls, row: list[Any]) -> Restore:
        request, instant, batch, rereads = row
        return cls(request, instant, batch, bool(rereads))


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the writer was with a batch: all that it takes to go on from there once more."""

    batch: int
    committed_at: datetime
    """Driver's time of the commit."""
    horizon: datetime
    """As in the plan of the batch."""
    cursors: tuple[Cursor, ...]
    """All known shards behind the batch, sorted by shard."""
    taken: Taken | None
    """How far the requests were; None: there had been none."""

    def __post_init__(self) -> None:
        require_count("batch", self.batch)
        require_utc("committed_at", self.committed_at)
        require_utc("horizon", self.horizon)

    @classmethod
    def of(cls, commit: BatchCommit) -> Standing:
        return cls(commit.batch, commit.committed_at, commit.horizon, commit.cursors, commit.taken)

    def to_fields(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "committedAt": time_to_json(self.committed_at),
            "horizon": time_to_json(self.horizon),
            "cursors": [cursor_to_row(cursor) for cursor in self.cursors],
            **(self.taken.to_fields() if self.taken else {}),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Standing:
        return cls(
            fields["batch"],
            required_time(fields["committedAt"]),
            required_time(fields["horizon"]),
            tuple(cursor_from_row(row) for row in fields["cursors"]),
            Taken.from_fields(fields),
        )

    def to_json(self) -> bytes:
        return encode("standing", self.to_fields())

    @classmethod
    def from_json(cls, content: bytes) -> Standing:
        """Raises CorruptLogError if the content is not what `to_json` wrote."""
        return decode("standing", content, cls.from_fields)
