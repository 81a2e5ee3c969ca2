"""Positions in a shard, and the ranges between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakestream.errors import InvalidValueError
from lakestream.model.codec import require_count, require_utc, required_time, time_to_json


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A cut in the sequence of a shard's records: just before a sequence number, or just behind it.

    Sequence numbers are compared as integers, as Kinesis orders them. The cuts of a shard are
    totally ordered, and two ranges touch exactly when the end of one *equals* the start of the other.
    """

    sequence: int
    """A sequence number of the shard; a record with it need not exist."""
    after: bool
    """False: the cut lies just before `sequence`. True: just behind it."""

    def __post_init__(self) -> None:
        require_count("sequence", self.sequence)

    def __str__(self) -> str:
        return f"{'after' if self.after else 'at'} {self.sequence}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str`."""
        where, _, sequence = text.partition(" ")
        if where not in ("at", "after") or not sequence.isdecimal():
            raise InvalidValueError(f"not a position: {text!r}")
        return cls(int(sequence), where == "after")


def at(sequence: int) -> Position:
    """The cut just before the record with this sequence number."""
    return Position(sequence, after=False)


def after(sequence: int) -> Position:
    """The cut just behind the record with this sequence number."""
    return Position(sequence, after=True)


@dataclass(frozen=True, slots=True)
class HashKeys:
    """The hash keys of one shard. A record goes where its explicit hash key is or, without one, the MD5 of its
    partition key, read as a number. Source: Kinesis API Reference, HashKeyRange and PutRecord."""

    first: int
    last: int
    """Inclusive."""

    def __post_init__(self) -> None:
        require_count("first", self.first)
        if self.first > self.last:
            raise InvalidValueError(f"hash keys from {self.first} to {self.last} are none")

    def __contains__(self, key: int) -> bool:
        return self.first <= key <= self.last

    def to_row(self) -> list[str]:
        return [str(self.first), str(self.last)]

    @classmethod
    def from_row(cls, row: list[str]) -> HashKeys:
        first, last = row
        return cls(int(first), int(last))


@dataclass(frozen=True, slots=True)
class ShardRange:
    """The records r of one shard with `start <= at(r) < end`; there is always at least one."""

    shard_id: str
    start: Position
    """Equals the end of the shard's range before, if there is one, or that of a loss behind it."""
    end: Position
    """Exclusive. At the first record of the next range, or after the last one of this."""
    first: int
    """Sequence number of the first record. A reader that finds another one has met data loss."""
    first_arrival: datetime
    """Arrival time of the first record."""
    end_arrival: datetime
    """No record of the range is expected to have arrived later; for estimates only."""
    closes_shard: bool
    """True: `end` lies after the closed shard's EndingSequenceNumber, and the shard is finished with this range."""
    expected_records: int
    """Estimate that sizes the reader's first page; 0: unknown."""
    task: int
    """Number, from 0, of the Spark task that reads the range. Planned, so that a replay makes the same files."""
    hash_keys: HashKeys | None = None
    """Of the shard, if they decide what goes into it. None: they do not, or a release planned that did not ask."""

    def __post_init__(self) -> None:
        if not self.shard_id:
            raise InvalidValueError("shard_id must not be empty")
        if not self.start <= at(self.first) < self.end:
            raise InvalidValueError(f"{self.shard_id}: first record {self.first} is not in [{self.start}, {self.end})")
        if self.closes_shard and not self.end.after:
            raise InvalidValueError(
                f"{self.shard_id}: a range that closes its shard ends after a record, not {self.end}"
            )
        require_utc("first_arrival", self.first_arrival)
        require_utc("end_arrival", self.end_arrival)
        require_count("expected_records", self.expected_records)
        require_count("task", self.task)

    def to_row(self) -> list[Any]:
        return [
            self.shard_id,
            str(self.start),
            str(self.end),
            str(self.first),
            time_to_json(self.first_arrival),
            time_to_json(self.end_arrival),
            self.closes_shard,
            self.expected_records,
            self.task,
        ]

    @classmethod
    def from_row(cls, row: list[Any], hash_keys: list[str] | None) -> ShardRange:
        shard_id, start, end, first, first_arrival, end_arrival, closes_shard, expected_records, task = row
        return cls(
            shard_id=shard_id,
            start=Position.parse(start),
            end=Position.parse(end),
            first=int(first),
            first_arrival=required_time(first_arrival),
            end_arrival=required_time(end_arrival),
            closes_shard=closes_shard,
            expected_records=expected_records,
            task=task,
            hash_keys=None if hash_keys is None else HashKeys.from_row(hash_keys),
        )


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of a shard that were, or may have been, trimmed before they were read, and were skipped.

    How many is unknown: Kinesis does not count what it trims.
    """

    shard_id: str
    start: Position | None
    """Where reading should have gone on; None: the shard had not been started."""
    end: Position | None
    """Where reading goes on instead; None: the shard holds nothing more."""
    since: datetime
    """The lost records arrived at or after this time…"""
    until: datetime
    """…and before this one."""

    def __post_init__(self) -> None:
        require_utc("since", self.since)
        require_utc("until", self.until)

    def __str__(self) -> str:
        start = "its beginning" if self.start is None else str(self.start)
        end = "its end" if self.end is None else str(self.end)
        return f"{self.shard_id} from {start} to {end} (arrived {self.since.isoformat()} to {self.until.isoformat()})"

    def to_row(self) -> list[Any]:
        return [
            self.shard_id,
            None if self.start is None else str(self.start),
            None if self.end is None else str(self.end),
            time_to_json(self.since),
            time_to_json(self.until),
        ]

    @classmethod
    def from_row(cls, row: list[Any]) -> Loss:
        shard_id, start, end, since, until = row
        return cls(
            shard_id,
            None if start is None else Position.parse(start),
            None if end is None else Position.parse(end),
            required_time(since),
            required_time(until),
        )
