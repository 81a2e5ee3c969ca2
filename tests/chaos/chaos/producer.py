"""Puts records, in a thread of its own, and keeps the ledger of what Kinesis acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chaos.events import Event, Events, Sent
from chaos.frames import Frames
from chaos.kpl import aggregate
from chaos.ledger import Ledger, Put
from chaos.poison import is_object, is_unusable_line, landed, poison
from chaos.resharding import shards_of
from chaos.setting import Setting

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

PAUSE_SECONDS = 0.7
"""Between two bursts, so that there is always another batch, and none is large."""
BURSTS_AHEAD = 12
BURSTS_PER_BATCH = 4
"""More are not put than drivers come to read, however slow the machine is."""
MOST_ENTRIES = 500
"""Of a PutRecords."""
AGGREGATES = 2
"""Of each burst, in parts of `AGGREGATED` user records."""
BETWEEN = (b"\n", b"\r\n", b" ", b"")
"""Two objects of a record."""
AGGREGATED = 5
"""User records; all with one partition key, but for one aggregate in each burst: as of a KPL that knows an older state
of the shards."""


class Producer:
    """The only one that writes to the stream. The records are the same for the same chance; when they come is not."""

    def __init__(
        self,
        client: KinesisClient,
        stream: str,
        chance: Random,
        now: Callable[[], datetime],
        batches: Callable[[], int],
        setting: Setting,
        frames: Frames | None = None,
    ) -> None:
        """Make a producer.

        Args:
            client: retries nothing.
            stream: exists.
            chance: all records follow from it.
            now: the stream's clock.
            batches: how many the drivers have committed so far.
            setting: what the records are for, and how many come.
            frames: that they are put into; None: they are JSON.
        """
        self.ledger = Ledger()
        self._client = client
        self._stream = stream
        self._chance = chance
        self._frames = frames
        self._events = Events(chance, moves=setting.moves, data=Event.json if frames is None else frames.event)
        self._now = now
        self._batches = batches
        self._bursts = 0
        self._setting = setting
        self._hash_keys: dict[str, range] = {}
        poisons = landed(sql=setting.sql, packed=setting.packed, framed=setting.avro)
        self._poisons = cycle(chance.sample(poisons, len(poisons)))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)
        self._failure: BaseException | None = None
        self._throttled: list[Put] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Put what was throttled, and no more."""
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        for _ in range(100):
            if not self._throttled:
                return
            self._put([])
            time.sleep(PAUSE_SECONDS)  # a shard takes a mebibyte a second
        raise RuntimeError("the stream throttles for ever")

    @contextmanager
    def still(self) -> Iterator[None]:
        """Puts nothing meanwhile."""
        with self._lock:
            yield

    def burst(self) -> None:
        """Put a burst of events, with aggregates and poison among them."""
        with self._lock:
            self._bursts += 1
            events = list(self._events.take(self._setting.burst, self._now()))
            split = len(events) - min(AGGREGATES * AGGREGATED, len(events) // 2)
            puts = self._records(events[:split])
            rest = events[split:]
            parts = [rest[at : at + AGGREGATED] for at in range(0, len(rest), AGGREGATED)]
            puts += [self._aggregate(part, strays=number == 0) for number, part in enumerate(parts)]
            puts += [self._poison(next(self._poisons)) for _ in range(2)]
            self._chance.shuffle(puts)
            self._put(puts)

    def flood(self, records: int, size: int) -> None:
        """Put records whose notes have so many characters that do not compress."""
        with self._lock:
            for _ in range(records):
                thing = replace(self._events.fresh(), note=self._chance.randbytes(size // 2).hex())
                sent = self._as_sent(thing.sent("flood"))
                self._put([Put(sent.partition_key, sent.data, (sent,))])

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_SECONDS):
                self._put_some()
        except BaseException as error:  # noqa: BLE001 - told by `stop`, in the thread that decides
            self._failure = error

    def _put_some(self) -> None:
        """As many bursts as come at a time, unless drivers are behind by too many, or the stream takes no more."""
        for _ in range(self._setting.volume):
            if self._bursts >= self._setting.volume * (BURSTS_AHEAD + BURSTS_PER_BATCH * self._batches()):
                return
            if len(self._throttled) < MOST_ENTRIES:
                self.burst()
            else:
                with self._lock:
                    self._put([])

    def _records(self, events: Sequence[Sent]) -> list[Put]:
        """One each; or several, some of which are unusable, where the writer takes them apart."""
        if not self._setting.packed:
            return [Put(event.partition_key, event.data, (event,)) for event in events]
        puts = []
        left = [*events]
        while left:
            size = self._chance.choice((1, 1, 2, 7))
            pack, left = left[:size], left[size:]
            between = self._chance.choice(BETWEEN)
            unusable = self._poisoned(next(self._poisons))
            if size > 1 and (is_object(unusable.data) or (b"\n" in between and is_unusable_line(unusable))):
                pack.insert(self._chance.randrange(len(pack) + 1), unusable)
            data = between.join(one.data for one in pack)
            puts.append(Put(pack[0].partition_key, data, tuple(pack), is_pack=len(pack) > 1))
        return puts

    def _aggregate(self, members: Sequence[Sent], *, strays: bool) -> Put:
        key = members[0].partition_key
        keyed = [member if strays else replace(member, partition_key=key) for member in members]
        return Put(key, aggregate([(one.partition_key, one.data) for one in keyed]), tuple(keyed), strays)

    def _poison(self, kind: str) -> Put:
        record = self._as_sent(self._poisoned(kind))
        if self._frames is not None and self._chance.random() < 0.3:
            record = self._frames.damaged(self._events.fresh())
        return Put(record.partition_key, record.data, (record,))

    def _as_sent(self, record: Sent) -> Sent:
        """What is JSON otherwise, and may be anything."""
        return record if self._frames is None else replace(record, data=self._frames.json(record.data))

    def _poisoned(self, kind: str) -> Sent:
        return poison(kind, self._chance, self._events.fresh(), self._setting.sink)

    def _put(self, new: Sequence[Put]) -> None:
        """One PutRecords. What was throttled is put again unless it is too late by now, since it has taken no effect;
        what got no answer never is."""
        now = self._now()
        puts = [put for put in (*self._throttled, *new) if not put.is_too_late(now)]
        puts, self._throttled = puts[:MOST_ENTRIES], puts[MOST_ENTRIES:]
        entries: list[PutRecordsRequestEntryTypeDef] = [
            {"Data": put.data}
            if self._setting.auto and number % 4
            else {"Data": put.data, "PartitionKey": put.partition_key}
            for number, put in enumerate(puts)
        ]
        if not entries:
            return
        try:
            answer = self._client.put_records(StreamName=self._stream, Records=entries)
        except ClientError:  # refused as a whole, without effect
            self._throttled += puts
            return
        except BotoCoreError:
            for put in puts:
                self.ledger.lose_sight(put)
            return
        for put, record in zip(puts, answer["Records"], strict=True):
            if "SequenceNumber" in record:
                self.ledger.acknowledge(record["ShardId"], int(record["SequenceNumber"]), put)
                self._throttled += self._again(put, record["ShardId"])
            else:
                self._throttled.append(put)

    def _again(self, put: Put, shard: str) -> list[Put]:
        """The members that came into another shard's aggregate, to be put once more, as the KPL does."""
        if not put.strays or self._setting.auto:
            return []
        with suppress(BotoCoreError, ClientError):
            # Refused, it is as if this producer ended here: the members are in no shard that they belong to.
            self._hash_keys = self._hash_keys if shard in self._hash_keys else hash_keys_of(self._client, self._stream)
        belong = put.belong(self._hash_keys.get(shard))
        strays = [member for member, belongs in zip(put.members, belong, strict=True) if not belongs]
        return [Put(member.partition_key, member.data, (member,)) for member in strays]


def hash_keys_of(client: KinesisClient, stream: str) -> dict[str, range]:
    """The hash keys of each shard that the stream has or had."""
    bounds = {shard["ShardId"]: shard["HashKeyRange"] for shard in shards_of(client, stream)}
    return {shard: range(int(at["StartingHashKey"]), int(at["EndingHashKey"]) + 1) for shard, at in bounds.items()}
