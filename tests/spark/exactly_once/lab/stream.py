"""Orders on a local Kinesis, and what a lake made of them has to hold."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle
from typing import Any

import orjson
import pyarrow as pa

from lakestream.testing.kpl import aggregate
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.events import EventMix, OrderEvents
from lakestream_loadgen.records import Record
from lakestream_localkinesis.testing import LocalKinesis

Place = tuple[str, int, int]
"""Shard, sequence number, number within an aggregated record: what tells a record from every other one."""

GAP_SECONDS = 0.06
"""Between two bursts: more than a batch of `MAX_RECORDS_PER_BATCH` may cover, so that each burst makes a batch."""
MAX_RECORDS_PER_BATCH = 60
AGGREGATED = 4
"""User records in the one KPL aggregate of a burst."""
SHARDS = 3

_MIX = EventMix(inserts=0.35, deletes=0.15, late=0.05, malformed=0.06, max_lateness=20.0, customers=40, max_live=60)
_UNUSABLE = (b"", b"\xff\xfe\x00binary\x00", b"[1,2]", "Grüße".encode("latin-1"), b'{"order_id":', b"{}x" * 2000)


@dataclass(frozen=True)
class Content:
    """What must not change on the way."""

    data: bytes
    arrival: datetime | None
    """None: not looked at."""


@dataclass(frozen=True)
class Truth:
    """All records of a stream, as Kinesis itself has them, and those of files that are taken as well."""

    good: dict[Place, Content]
    unusable: dict[Place, Content]
    files: frozenset[str] = frozenset()
    """In place of shards: what is to be in the lake, and came from files."""

    @property
    def records(self) -> int:
        """Of the stream."""
        return len(self._streamed)

    @property
    def kinesis_records(self) -> int:
        """Of the stream; an aggregate is one."""
        return sum(sub == 0 for _, _, sub in self._streamed)

    @property
    def _streamed(self) -> list[Place]:
        return [place for place in (*self.good, *self.unusable) if place[0] not in self.files]

    def events(self) -> pa.Table:
        """The good records as typed rows, for the fold."""
        rows = [orjson.loads(content.data) for content in self.good.values()]
        for row in rows:
            for name in ("created_at", "updated_at"):
                row[name] = datetime.fromisoformat(row[name])
        table = pa.Table.from_pylist(rows, schema=EVENT_SCHEMA)
        arrivals = [content.arrival for content in self.good.values()]
        table = table.append_column("_arrival", pa.array(arrivals, pa.timestamp("us", "UTC")))
        return table.append_column("_sequence_number", pa.array([str(place[1]) for place in self.good]))


class OrderStream:
    """A stream that is filled in bursts."""

    def __init__(self, server: LocalKinesis, name: str, seed: int) -> None:
        self.server = server
        self.name = name
        self._events = OrderEvents(seed=seed, worker=0, prefix=name, mix=_MIX)
        self._unusable = cycle(_UNUSABLE)
        self._malformed: set[bytes] = set(_UNUSABLE)
        self._aggregated: dict[bytes, list[bytes]] = {}
        self._filed: dict[Place, Content] = {}
        self._client = server.client()
        server.create_stream(name, shards=SHARDS)

    def put(self, bursts: int, records: int = 30, *, unusable: Container[int] = ()) -> None:
        """Put so many bursts, far enough apart to become batches of their own; each has unusable records and a KPL
        aggregate.

        Args:
            bursts: how many.
            records: of each, besides those of the aggregate.
            unusable: bursts, by number from 0, that have an unusable record and nothing else.
        """
        for burst in range(bursts):
            if burst:
                time.sleep(GAP_SECONDS)
            entries = [] if burst in unusable else self._usable(records)
            entries.append({"Data": next(self._unusable), "PartitionKey": f"unusable-{burst}"})
            answer = self._client.put_records(StreamName=self.name, Records=entries)
            assert answer["FailedRecordCount"] == 0, answer

    def _usable(self, records: int) -> list[dict[str, Any]]:
        events = self._events.take(records + AGGREGATED, time.time())
        self._malformed.update(event.data for event in events if event.malformed)
        entries = [{"Data": event.data, "PartitionKey": event.partition_key} for event in events[:records]]
        return [*entries, self._aggregate(events[records:])]

    def _aggregate(self, events: Sequence[Record]) -> dict[str, Any]:
        # As the KPL does, of records that belong into one shard.
        where = str(int.from_bytes(hashlib.md5(events[0].partition_key.encode(), usedforsecurity=False).digest()))
        data = aggregate([(event.partition_key, where, event.data) for event in events])
        self._aggregated[data] = [event.data for event in events]
        return {"Data": data, "PartitionKey": events[0].partition_key}

    def lines(self, records: int, *, prefix: str = "") -> list[Record]:
        """Events that are not put into the stream, of the orders that are in it; with a prefix, of others, of last
        year."""
        if not prefix:
            found = self._events.take(records, time.time())
        else:
            events = OrderEvents(seed=7, worker=1, prefix=f"{self.name}-{prefix}", mix=_MIX)
            found = events.take(records, time.time() - 365 * 86_400)
        self._malformed.update(event.data for event in found if event.malformed)
        return [event for event in found if event.data.strip() and b"\n" not in event.data]

    def expect(self, place: Place, data: bytes, arrival: datetime) -> None:
        """A record of a file has to be in the lake as well."""
        self._filed[place] = Content(data, arrival)

    def truth(self) -> Truth:
        """What Kinesis holds, from Kinesis itself, and what is expected of files."""
        good = {place: content for place, content in self._filed.items() if content.data not in self._malformed}
        unusable = {place: content for place, content in self._filed.items() if content.data in self._malformed}
        for record in self.server.records(self.name):
            for sub, data in enumerate(self._aggregated.get(record.data, [record.data])):
                kind = unusable if data in self._malformed else good
                kind[record.shard_id, int(record.sequence_number), sub] = Content(data, record.arrival)
        return Truth(good, unusable, frozenset(path for path, _, _ in self._filed))


def split(server: LocalKinesis, stream: str) -> None:
    """Split the first open shard in the middle."""
    client = server.client(retries={"total_max_attempts": 5})
    shards = client.list_shards(StreamName=stream, ShardFilter={"Type": "AT_LATEST"})["Shards"]
    low, high = (int(shards[0]["HashKeyRange"][end]) for end in ("StartingHashKey", "EndingHashKey"))
    client.split_shard(
        StreamName=stream, ShardToSplit=shards[0]["ShardId"], NewStartingHashKey=str((low + high) // 2 + 1)
    )


def merge(server: LocalKinesis, stream: str) -> None:
    """Merge the first two open shards that lie side by side."""
    client = server.client(retries={"total_max_attempts": 5})
    shards = client.list_shards(StreamName=stream, ShardFilter={"Type": "AT_LATEST"})["Shards"]
    shards.sort(key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
    first, second = shards[0]["ShardId"], shards[1]["ShardId"]
    client.merge_shards(StreamName=stream, ShardToMerge=first, AdjacentShardToMerge=second)
