"""Splits and merges shards, again and again."""

from __future__ import annotations

import threading
from random import Random
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import ShardTypeDef

_MOST = 8
"""Open shards; each is another range in every batch."""
_TIMES = 12
"""Each is another generation of shards, and a batch reads one generation of a lineage."""


class Resharding:
    """A thread that reshards a number of times, unless it is stopped before."""

    def __init__(self, client: KinesisClient, stream: str, chance: Random, seconds: float) -> None:
        self.done = 0
        self._client = client
        self._stream = stream
        self._chance = chance
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resharding", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while self.done < _TIMES and not self._stop.wait(self._seconds):
            try:
                self._once()
                self.done += 1
            except (BotoCoreError, ClientError):
                continue  # Kinesis is being faulty as well

    def _once(self) -> None:
        every = shards_of(self._client, self._stream)
        shards = [shard for shard in every if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
        shards.sort(key=lambda shard: _bounds(shard)[0])
        if len(shards) > 1 and (len(shards) >= _MOST or self._chance.random() < 0.5):
            place = self._chance.randrange(len(shards) - 1)
            left, right = shards[place : place + 2]
            self._client.merge_shards(
                StreamName=self._stream, ShardToMerge=left["ShardId"], AdjacentShardToMerge=right["ShardId"]
            )
        else:
            shard = self._chance.choice(shards)
            start, end = _bounds(shard)
            middle = start + (end - start) * self._chance.randrange(1, 10) // 10
            self._client.split_shard(
                StreamName=self._stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(max(middle, start + 1))
            )


def shards_of(client: KinesisClient, stream: str) -> list[ShardTypeDef]:
    """The shards that are open or retained, by an operation that no fault befalls: ListShards may be out of date."""
    pages = client.get_paginator("describe_stream").paginate(StreamName=stream)
    return [shard for page in pages for shard in page["StreamDescription"]["Shards"]]


def _bounds(shard: ShardTypeDef) -> tuple[int, int]:
    keys = shard["HashKeyRange"]
    return int(keys["StartingHashKey"]), int(keys["EndingHashKey"])
