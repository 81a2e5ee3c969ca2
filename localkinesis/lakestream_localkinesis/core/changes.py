"""What a stream that is CREATING, UPDATING or DELETING becomes, as data: it outlives the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lakestream_localkinesis.core.stream import Stream, StreamMode


class Change(Protocol):
    """Takes effect once, at the time that it was due."""

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Open:
    """The first shards of a new stream."""

    shards: int

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.open_evenly(self.shards, at_ms)


@dataclass(frozen=True, slots=True)
class Split:
    """One shard becomes two, the second from a hash key on."""

    shard: int
    new_start: int

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.split(stream.shards[self.shard], self.new_start, at_ms)


@dataclass(frozen=True, slots=True)
class Merge:
    """Two adjacent shards become one."""

    lower: int
    upper: int

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.merge(stream.shards[self.lower], stream.shards[self.upper], at_ms)


@dataclass(frozen=True, slots=True)
class Scale:
    """The key space in so many equal ranges."""

    shards: int

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.scale_evenly(self.shards, at_ms)


@dataclass(frozen=True, slots=True)
class SetMode:
    """Provisioned or on demand."""

    mode: StreamMode

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.set_mode(self.mode)


@dataclass(frozen=True, slots=True)
class SetMaxRecordBytes:
    """What a record may have, of data and partition key."""

    size: int

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.max_record_bytes = self.size


@dataclass(frozen=True, slots=True)
class Delete:
    """The stream is gone, with all it holds."""

    def apply(self, stream: Stream, at_ms: int) -> None:
        """Change the stream."""
        stream.deleted = True
