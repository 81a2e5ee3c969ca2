"""What the engine asks of a sink.

A batch is written at least once and must be visible exactly once. A sink gets there in one of two ways: it finds the
batch again in what it has made visible (`find`; Hudi keeps it in the commit's metadata), or writing a batch twice is
writing it once (JSON: names and bytes are a function of the batch; or, where a transform takes rows from task to task,
the log names the objects of one attempt, and those of others are removed).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from lakestream.errors import InvalidValueError
from lakestream.model import FileEntry, SinkCommit, Upkeep
from lakestream.model.codec import require_count

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Arrived:
    """How far the stream is with a batch, by when records came into it."""

    oldest: datetime | None
    """Neither the batch nor any later one has a record that came before this, but for what is yet to be asked for.
    None: somebody has asked for something that is not all taken yet, and may have come at any time."""
    before: datetime
    """The batch has none that came at this time or later."""


@dataclass(frozen=True, slots=True)
class BatchRef:
    """What tells a batch from every other one in the same table."""

    batch: int
    """Number of the batch in its checkpoint."""
    checkpoint: str
    """UUID of the checkpoint; another checkpoint's batches may be in the same table."""
    arrived: Arrived | None = None
    """How far the stream is with it; None: it is of none, but of what somebody has asked for."""
    asked_until: datetime | None = None
    """If that is a span of the stream, none of its records came later; None: it is not, and nobody knows."""
    attempt: str = ""
    """Tells the objects of this attempt from those of others; empty: all of them make the same ones."""

    def __post_init__(self) -> None:
        require_count("batch", self.batch)
        if not self.checkpoint:
            raise InvalidValueError("checkpoint must not be empty")


class Sink(Upkeep, Protocol):
    """A place that batches are written to, in order, by one driver at a time."""

    @property
    def name(self) -> str:
        """Kind of the sink, for logs and metrics: `hudi`, `json`."""
        ...

    @property
    def columns(self) -> StructType:
        """Columns of the files, as they are stored, partition columns included; to be asked once `prepare` is done."""
        ...

    def partitions(self) -> Iterable[str]:
        """The paths of all partitions that have been written to; lists the table. None for a table without any."""
        ...

    def refusal(self, output: StructType) -> Column | None:
        """Why a row cannot be written: null, or the reason with the name of the column. None: every row can be.

        One row that a sink fails at would stop a stream for ever, since its batch is read again. So `write` is given
        no rows for which there is a reason.

        Args:
            output: the columns that every batch will have.

        Raises:
            SettingsError: a setting names a column that `output` lacks.
        """
        ...

    def prepare(self, output: StructType) -> None:
        """Create the place, or check that it is still the one that the settings describe.

        Args:
            output: the columns that every batch will have (those of `transform`).

        Raises:
            SettingsChangedError: record key, table type or partitioning differ from those of what is there.
            SettingsError: a setting names a column that `output` lacks.
        """
        ...

    def find(self, ref: BatchRef) -> SinkCommit | None:
        """The batch as it is visible already, or None if it is not (or if writing it again changes nothing)."""
        ...

    def write(self, ref: BatchRef, rows: DataFrame, *, replay: bool) -> SinkCommit:
        """Make the rows visible, all of them or none.

        Args:
            ref: the batch.
            rows: the columns of `output`, no row with a `refusal`; persisted by the caller, so that reading them twice
                costs little.
            replay: an earlier attempt may have left parts of the batch, perhaps under other settings.
        """
        ...

    def close(self) -> None:
        """Let go of what runs beside the batches; waits for it to end."""
        ...


__all__ = ["BatchRef", "FileEntry", "Sink", "SinkCommit"]
