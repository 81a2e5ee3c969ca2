"""Any history of puts, reads, resharding and time against a dictionary: nothing lost, doubled or reordered."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import orjson
from botocore.eventstream import EventStreamBuffer
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.clock import DrivenClock, SystemClock
from lakestream_localkinesis.core.hashing import KEY_SPACE, HashRange
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.http import Request

HOUR_MS = 3600 * 1000
STREAM = "orders"
ARN = f"arn:aws:kinesis:us-east-1:000000000000:stream/{STREAM}"
# A day in empty pages, and all records a history can put, one by one.
MOST_PAGES = 1000


class Shard:
    """The model of a shard."""

    def __init__(self, hash_range: HashRange) -> None:
        self.range = hash_range
        self.records: list[tuple[int, bytes]] = []  # arrival, data
        self.closed_ms: int | None = None

    def takes(self, partition_key: str) -> bool:
        hashed = int(hashlib.md5(partition_key.encode()).hexdigest(), 16)
        return self.range.start <= hashed <= self.range.end


class KinesisMachine(RuleBasedStateMachine):
    """The application beside its model: a dictionary of shards."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = DrivenClock(SystemClock(), frozen_at_ms=1_700_000_000_000)
        self.application = Application(Account(AccountSettings(limits=Limits.none())), self.clock)
        self.model: dict[str, Shard] = {}
        self.serial = 0
        self.sequences: dict[bytes, int] = {}
        self.keys: dict[bytes, str | None] = {}
        self.on_demand = False
        self.auto = False

    def call(self, operation: str, **fields: Any) -> Any:
        headers = {"x-amz-target": f"Kinesis_20131202.{operation}"}
        response = self.application.handle(Request("POST", "/", headers, orjson.dumps(fields)))
        assert response.status == 200, response.body
        return orjson.loads(response.body or b"{}")

    def open_shards(self) -> list[str]:
        opened = [name for name, shard in self.model.items() if shard.closed_ms is None]
        return sorted(opened, key=lambda name: self.model[name].range.start)

    def horizon_ms(self) -> int:
        return self.clock.now_ms() - 24 * HOUR_MS

    def retained(self, name: str) -> list[bytes]:
        return [data for arrival, data in self.model[name].records if arrival >= self.horizon_ms()]

    def add(self, name: str, hash_range: HashRange) -> None:
        self.model[name] = Shard(hash_range)

    @initialize(count=st.integers(1, 4), mode=st.sampled_from([None, "PROVISIONED", "ON_DEMAND"]), auto=st.booleans())
    def create(self, count: int, mode: str | None, auto: bool) -> None:
        self.on_demand = mode == "ON_DEMAND"
        self.auto = self.on_demand and auto
        fields = {"StreamModeDetails": {"StreamMode": mode}} if mode else {}
        more = {"RecordDistributionStrategy": "AUTO"} if self.auto else {}
        sized = {} if self.on_demand else {"ShardCount": count}
        self.call("CreateStream", StreamName=STREAM, **fields, **more, **sized)
        for shard in self.call("ListShards", StreamName=STREAM)["Shards"]:
            given_range = shard["HashKeyRange"]
            whole = HashRange(int(given_range["StartingHashKey"]), int(given_range["EndingHashKey"]))
            self.add(shard["ShardId"], whole)

    @rule(keys=st.lists(st.none() | st.text(min_size=1, max_size=8), min_size=1, max_size=20), size=st.integers(0, 50))
    def put(self, keys: list[str | None], size: int) -> None:
        if not self.auto:
            keys = [key or "k" for key in keys]
        data = []
        for _ in keys:
            self.serial += 1
            data.append(b"%d:" % self.serial + b"x" * size)
        entries = [
            {"Data": base64.b64encode(value).decode(), **({"PartitionKey": key} if key else {})}
            for value, key in zip(data, keys, strict=True)
        ]
        answer = self.call("PutRecords", StreamName=STREAM, Records=entries)
        assert answer["FailedRecordCount"] == 0
        for value, key, result in zip(data, keys, answer["Records"], strict=True):
            name = result["ShardId"]
            assert name in self.open_shards()
            assert self.auto or self.model[name].takes(key or "")
            self.sequences[value] = int(result["SequenceNumber"])
            self.keys[value] = key
            self.model[name].records.append((self.clock.now_ms(), value))

    @rule(milliseconds=st.sampled_from([1, 999, 1000, 60_000, HOUR_MS, 7 * HOUR_MS]))
    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @precondition(lambda self: self.on_demand)
    @rule(auto=st.booleans())
    def change_strategy(self, auto: bool) -> None:
        self.auto = auto
        strategy = "AUTO" if auto else "USER_PARTITION_KEY"
        self.call("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, RecordDistributionStrategy=strategy)

    @rule()
    def change_mode(self) -> None:
        """Twice in 24 hours at most."""
        self.clock.advance(24 * HOUR_MS)
        self.on_demand = not self.on_demand
        self.auto = False
        mode = "ON_DEMAND" if self.on_demand else "PROVISIONED"
        # Its shards stay as they are, and so few records call for no more.
        self.call("UpdateStreamMode", StreamARN=ARN, StreamModeDetails={"StreamMode": mode})

    @precondition(lambda self: not self.on_demand)
    @rule(data=st.data(), fraction=st.floats(0.1, 0.9))
    def split(self, data: st.DataObject, fraction: float) -> None:
        name = data.draw(st.sampled_from(self.open_shards()))
        whole = self.model[name].range
        if whole.end - whole.start < 10:
            return
        key = whole.start + max(2, int((whole.end - whole.start) * fraction))
        self.call("SplitShard", StreamName=STREAM, ShardToSplit=name, NewStartingHashKey=str(key))
        self.close(name)
        self.adopt([HashRange(whole.start, key - 1), HashRange(key, whole.end)])

    @precondition(lambda self: not self.on_demand and len(self.open_shards()) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        opened = self.open_shards()
        place = data.draw(st.integers(0, len(opened) - 2))
        lower, upper = opened[place], opened[place + 1]
        self.call("MergeShards", StreamName=STREAM, ShardToMerge=lower, AdjacentShardToMerge=upper)
        whole = HashRange(self.model[lower].range.start, self.model[upper].range.end)
        self.close(lower)
        self.close(upper)
        self.adopt([whole])

    def close(self, name: str) -> None:
        self.model[name].closed_ms = self.clock.now_ms()

    def adopt(self, ranges: list[HashRange]) -> None:
        """The new shards are named on from the highest index there ever was."""
        following = max(int(name[-12:]) for name in self.model) + 1
        for index, hash_range in enumerate(ranges, following):
            self.add(f"shardId-{index:012d}", hash_range)

    @rule(data=st.data(), limit=st.integers(1, 7))
    def read_everything(self, data: st.DataObject, limit: int) -> None:
        name = data.draw(st.sampled_from(self.listed()))
        assert self.read(name, "TRIM_HORIZON", limit) == self.retained(name)

    @rule(data=st.data(), after=st.booleans())
    def read_from_a_record(self, data: st.DataObject, after: bool) -> None:
        name = data.draw(st.sampled_from(self.listed()))
        retained = self.retained(name)
        if not retained:
            return
        place = data.draw(st.integers(0, len(retained) - 1))
        kind = "AFTER_SEQUENCE_NUMBER" if after else "AT_SEQUENCE_NUMBER"
        number = str(self.sequences[retained[place]])
        assert self.read(name, kind, 10_000, StartingSequenceNumber=number) == retained[place + after :]

    @rule(data=st.data(), after=st.booleans())
    def subscribe_to_everything(self, data: st.DataObject, after: bool) -> None:
        """One subscription for each event: each goes on where the one before it stood."""
        name = data.draw(st.sampled_from(self.listed()))
        expected = self.retained(name)
        start = {"Type": "TRIM_HORIZON"}
        got: list[bytes] = []
        for _ in range(MOST_PAGES):
            event = self.event(name, start)
            got += [base64.b64decode(record["Data"]) for record in event["Records"]]
            if "ContinuationSequenceNumber" not in event:
                assert self.model[name].closed_ms is not None
                assert event["ChildShards"]
                break
            if event["MillisBehindLatest"] == 0:
                assert self.model[name].closed_ms is None
                break
            kind = "AFTER_SEQUENCE_NUMBER" if after else "AT_SEQUENCE_NUMBER"
            start = {"Type": kind, "SequenceNumber": event["ContinuationSequenceNumber"]}
        assert got == expected

    def event(self, name: str, start: dict[str, str]) -> Any:
        """The first event of a new subscription, by a consumer that is there for that."""
        consumer = self.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="lake")["Consumer"]["ConsumerARN"]
        headers = {"x-amz-target": "Kinesis_20131202.SubscribeToShard"}
        fields = {"ConsumerARN": consumer, "ShardId": name, "StartingPosition": start}
        response = self.application.handle(Request("POST", "/", headers, orjson.dumps(fields)))
        assert response.events, response.body
        frames = EventStreamBuffer()
        for _ in range(2):
            frames.add_data(response.events.poll(self.clock.now_ms()))
        self.call("DeregisterStreamConsumer", ConsumerARN=consumer)
        return orjson.loads(list(frames)[1].payload)

    @rule(data=st.data(), back_ms=st.sampled_from([0, 1, 1000, HOUR_MS, 30 * HOUR_MS]))
    def read_from_a_time(self, data: st.DataObject, back_ms: int) -> None:
        name = data.draw(st.sampled_from(self.listed()))
        start_ms = self.clock.now_ms() - back_ms
        expected = [value for arrival, value in self.model[name].records if arrival >= max(start_ms, self.horizon_ms())]
        assert self.read(name, "AT_TIMESTAMP", 10_000, Timestamp=start_ms / 1000) == expected

    def read(self, name: str, kind: str, limit: int, **fields: Any) -> list[bytes]:
        answer = self.call("GetShardIterator", StreamName=STREAM, ShardId=name, ShardIteratorType=kind, **fields)
        iterator = answer["ShardIterator"]
        data: list[bytes] = []
        for _ in range(MOST_PAGES):
            page = self.call("GetRecords", ShardIterator=iterator, Limit=limit)
            assert len(page["Records"]) <= limit
            for record in page["Records"]:
                data.append(base64.b64decode(record["Data"]))
                assert record.get("PartitionKey") == self.keys[data[-1]]
            iterator = page["NextShardIterator"]
            if iterator is None:
                assert self.model[name].closed_ms is not None
                assert page["ChildShards"]
                return data
            if page["MillisBehindLatest"] == 0:
                assert self.model[name].closed_ms is None
                return data
        raise AssertionError(f"no end of {name} after {MOST_PAGES} pages")

    def listed(self) -> list[str]:
        horizon_ms = self.horizon_ms()
        return [name for name, shard in self.model.items() if shard.closed_ms is None or shard.closed_ms >= horizon_ms]

    @invariant()
    def the_open_shards_tile_the_key_space(self) -> None:
        if not self.model:
            return
        opened = self.call("ListShards", StreamName=STREAM, ShardFilter={"Type": "AT_LATEST"})["Shards"]
        ranges = sorted(
            (int(s["HashKeyRange"]["StartingHashKey"]), int(s["HashKeyRange"]["EndingHashKey"])) for s in opened
        )
        assert ranges == [(self.model[name].range.start, self.model[name].range.end) for name in self.open_shards()]
        assert sum(end - start + 1 for start, end in ranges) == KEY_SPACE

    @invariant()
    def what_is_listed_is_what_is_retained(self) -> None:
        if self.model:
            # Once a second is often enough for the server to forget closed shards.
            self.clock.advance(1000)
            shards = self.call("ListShards", StreamName=STREAM)["Shards"]
            assert [shard["ShardId"] for shard in shards] == self.listed()

    @invariant()
    def children_come_after_their_parents(self) -> None:
        if not self.model:
            return
        shards = {shard["ShardId"]: shard for shard in self.call("ListShards", StreamName=STREAM)["Shards"]}
        for shard in shards.values():
            start = int(shard["SequenceNumberRange"]["StartingSequenceNumber"])
            for parent in (shard.get("ParentShardId"), shard.get("AdjacentParentShardId")):
                if parent in shards:
                    assert int(shards[parent]["SequenceNumberRange"]["EndingSequenceNumber"]) < start


TestKinesisMachine = KinesisMachine.TestCase
TestKinesisMachine.settings = settings(max_examples=settings().max_examples * 2 // 5, stateful_step_count=30)
