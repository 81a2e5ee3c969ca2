"""The producer's ledger: what was put, and where Kinesis said that it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, compress
from typing import TypeAlias

from chaos.events import Row, Sent, epoch_micros
from chaos.kpl import hash_key

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

Where: TypeAlias = tuple[str, int, int]
"""Shard, sequence number, number within an aggregate or a pack: tells a record from every other one."""
_OF_A_PACK = 1 << 32
"""Between the numbers of two objects of a record."""


@dataclass(frozen=True)
class Put:
    """One Kinesis record."""

    partition_key: str
    data: bytes
    members: tuple[Sent, ...]
    """The user records in it: itself, or those of an aggregate."""
    strays: bool = False
    """Whether members may be of other shards than the one that it comes into."""
    is_pack: bool = False
    """Whether members are objects in it, one after the other, which have nothing of their own but their bytes."""

    def is_too_late(self, now: datetime) -> bool:
        """Whether one of its members is."""
        return any(member.is_too_late(now) for member in self.members)

    def number(self, index: int) -> int:
        """Of a member within it."""
        return index * _OF_A_PACK if self.is_pack else index

    def belong(self, hash_keys: range | None) -> list[bool]:
        """Of each member whether it counts in a shard with these hash keys; None: placement is not by key."""
        if hash_keys is None or not self.strays:
            return [True] * len(self.members)
        return [hash_key(member.partition_key) in hash_keys for member in self.members]


@dataclass(frozen=True)
class Stored:
    """A record as the stream has it."""

    shard: str
    sequence: int
    data: bytes
    arrival: datetime = _LONG_AGO
    partition_key: str | None = None

    def origin(self, member: Sent, put: Put) -> Row:
        """Of a user record in it: one of an aggregate has a partition key of its own."""
        key = self.partition_key if put.is_pack or member.data == self.data else member.partition_key
        return {"_arrival": epoch_micros(self.arrival), "_partition_key": key}


@dataclass(frozen=True)
class Span:
    """A time of which all that arrived in it is read once more."""

    since: datetime
    until: datetime

    def has(self, record: Stored) -> bool:
        """Whether a record is in it for certain: a request is told in whole seconds."""
        return self.since + timedelta(seconds=1) <= record.arrival < self.until - timedelta(seconds=1)


@dataclass(frozen=True)
class Loss:
    """What a driver said that it skipped: what arrived in a shard from one time on, and before another one."""

    shard: str
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Told:
    """What a log says of what is not in its table."""

    losses: tuple[Loss, ...] = ()
    shards: frozenset[str] = frozenset()
    """That it knows of."""
    begins: datetime = _LONG_AGO
    """What came before this and is gone was gone before the first batch: a table begins with what there is."""

    def covers(self, record: Stored) -> bool:
        """Whether a record may have been skipped. A shard that came and went unseen is told of by its descendants."""
        return record.arrival < self.begins or any(
            loss.since <= record.arrival < loss.until
            for loss in self.losses
            if loss.shard == record.shard or record.shard not in self.shards
        )


@dataclass(frozen=True)
class Truth:
    """All records of a stream, and what has to become of each."""

    sent: dict[Where, Sent]
    faults: tuple[str, ...]
    """Where stream and ledger differ: the fault is Kinesis's, or the ledger's own."""
    skippable: frozenset[Where] = frozenset()
    """Those that the stream has no more, and that a driver has told of."""
    readings: int = 1
    """How often each record may have been read: in a table by key that shows nowhere, in quarantine it does."""
    is_in_order: bool = True
    """Whether each was read once; if not, an earlier one of a shard may have come behind a later one."""
    again: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By shard and sequence number, how often a record has to have been read beside the stream."""
    origins: Mapping[Where, Row] = field(default_factory=dict)
    """Arrival (microseconds since the epoch) and partition key of those that are of the stream."""

    def origin(self, where: Where) -> Row:
        """What a lake has to say of where a record is from: of files nothing is asked."""
        return self.origins.get(where, {})


class Ledger:
    """What a producer knows. Used by one thread at a time."""

    def __init__(self) -> None:
        self._acknowledged: dict[tuple[str, int], Put] = {}
        self._unknown: defaultdict[bytes, list[Put]] = defaultdict(list)

    def acknowledge(self, shard: str, sequence: int, put: Put) -> None:
        """Kinesis said that it has it."""
        self._acknowledged[shard, sequence] = put

    def lose_sight(self, put: Put) -> None:
        """No answer came: it may be in the stream or not. It is never put again."""
        self._unknown[put.data].append(put)

    @property
    def records(self) -> int:
        """User records that were acknowledged."""
        return sum(len(put.members) for put in self._acknowledged.values())

    def settle(
        self,
        stream: Iterable[Stored],
        hash_keys: Mapping[str, range],
        trimmed: Iterable[Stored] = (),
        told: Told = Told(),
        readings: int = 1,
        spans: Sequence[Span] = (),
    ) -> Truth:
        """Hold the ledger against the stream, which alone knows whether what got no answer is in it.

        Args:
            stream: all of it.
            hash_keys: of each shard; none where placement is not by key.
            trimmed: what it had, and has no more.
            told: what drivers said that they skipped.
            readings: how often each record may have been read.
            spans: that drivers have read beside the stream.
        """
        gone = {(record.shard, record.sequence): record for record in trimmed}
        sent: dict[Where, Sent] = {}
        faults = []
        missing = dict(self._acknowledged)
        again: Counter[tuple[str, int]] = Counter()
        origins: dict[Where, Row] = {}
        for record in chain(gone.values(), stream):
            again[record.shard, record.sequence] += sum(span.has(record) for span in spans)
            put = missing.pop((record.shard, record.sequence), None) or self._found(record.data)
            if put is None or put.data != record.data:
                faults.append(f"the stream has a record that was not put: {record.shard} {record.sequence}")
                continue
            belong = put.belong(hash_keys.get(record.shard))
            for index, member in compress(enumerate(put.members), belong):
                where = record.shard, record.sequence, put.number(index)
                sent[where], origins[where] = member, record.origin(member, put)
        faults += [f"the stream lacks an acknowledged record: {shard} {sequence}" for shard, sequence in missing]
        skippable = {at for at, record in gone.items() if told.covers(record)}
        gone_and_told = frozenset(where for where in sent if where[:2] in skippable)
        if told.losses and not gone:
            faults.append(f"a driver told of losses, and the stream has lost nothing: {told.losses}")
        return Truth(sent, tuple(faults), gone_and_told, readings, again=again, origins=origins)

    def _found(self, data: bytes) -> Put | None:
        waiting = self._unknown.get(data)
        return waiting.pop() if waiting else None
