"""Any history of operations and time, with kills in the middle of writes: all that was acknowledged is there."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.control import Control
from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.clock import DrivenClock, SystemClock
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.faults import FaultPlan
from lakestream_localkinesis.http import Request
from lakestream_localkinesis.journal.journal import Journal

HOUR_MS = 3600 * 1000
NAMES = ("orders", "clicks", "wide")
SETTINGS = AccountSettings(limits=Limits.none(), transition_ms=2_000)
# So small that a history has many of them.
SEGMENT_BYTES = 6_000

names = st.sampled_from(NAMES)


class KilledError(BaseException):
    """The process ends: nothing catches it."""


@dataclass(frozen=True)
class Record:
    """What a producer knows of a record."""

    shard: str
    sequence: str
    data: bytes
    arrival_ms: int


@dataclass
class Stream:
    """What clients know of a stream."""

    records: list[Record] = field(default_factory=list)
    """Acknowledged."""
    retention_hours: int = 24
    gone_before_ms: int = 0

    def retained(self, now_ms: int) -> list[Record]:
        oldest_ms = max(self.gone_before_ms, now_ms - self.retention_hours * HOUR_MS)
        return [record for record in self.records if record.arrival_ms >= oldest_ms]

    def retain(self, hours: int, now_ms: int) -> None:
        self.gone_before_ms = max(self.gone_before_ms, now_ms - min(hours, self.retention_hours) * HOUR_MS)
        self.retention_hours = hours


class JournalMachine(RuleBasedStateMachine):
    """A server in a folder beside what its clients were told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = DrivenClock(SystemClock(), frozen_at_ms=1_700_000_000_000)
        self.bytes_left: int | None = None
        self.serial = 0
        self.model: dict[str, Stream] = {}
        """Streams that are there and not being deleted."""
        self.unanswered: set[bytes] = set()
        """Data of puts whose server was killed."""
        self.start()

    def teardown(self) -> None:
        self.journal.close()
        shutil.rmtree(self.folder)

    def write(self, descriptor: int, data: memoryview) -> int:
        if self.bytes_left is None:
            return os.write(descriptor, data)
        written = os.write(descriptor, data[: self.bytes_left])
        self.bytes_left -= written
        if written < len(data):
            raise KilledError
        return written

    def start(self) -> None:
        self.bytes_left = None
        now_ms = self.clock.now_ms()
        self.journal = Journal(self.folder, SETTINGS, now_ms, segment_bytes=SEGMENT_BYTES, write=self.write)
        control = Control(self.clock, FaultPlan())
        self.application = Application(self.journal.account, self.clock, control, self.journal)

    def restart(self) -> None:
        self.journal.close()
        self.start()

    def request(self, operation: str, **fields: Any) -> tuple[int, Any]:
        headers = {"x-amz-target": f"Kinesis_20131202.{operation}"}
        response = self.application.handle(Request("POST", "/", headers, orjson.dumps(fields)))
        return response.status, orjson.loads(response.body or b"{}")

    def told(self, name: str) -> dict[str, Any]:
        """All that the server says of a stream, and all that it has of it."""
        arn = self.application.account.arn(name)
        records = self.application.handle(Request("GET", f"/_testing/records/{name}", {}, b""))
        return {
            "summary": self.request("DescribeStreamSummary", StreamName=name),
            "shards": self.request("ListShards", StreamName=name),
            "tags": self.request("ListTagsForStream", StreamName=name),
            "consumers": self.request("ListStreamConsumers", StreamARN=arn),
            "records": (records.status, orjson.loads(records.body)),
        }

    def told_of_all(self, but: str = "") -> dict[str, Any]:
        """The same of all streams."""
        with self.spared():
            return {name: self.told(name) for name in NAMES if name != but}

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Nobody is killed meanwhile."""
        armed, self.bytes_left = self.bytes_left, None
        yield
        self.bytes_left = armed

    def summary(self, name: str) -> dict[str, Any]:
        with self.spared():
            summary: dict[str, Any] = self.told(name)["summary"][1].get("StreamDescriptionSummary", {})
        return summary

    def is_there(self, name: str) -> bool:
        """Whether there is such a stream that is not being deleted."""
        return self.summary(name).get("StreamStatus", "DELETING") != "DELETING"

    def change(self, operation: str, name: str, **fields: Any) -> dict[str, Any] | None:
        """The answer; None if the server refused, or was killed over it and has been started again."""
        others = self.told_of_all(but=name)
        try:
            status, answer = self.request(operation, **fields)
        except KilledError:
            self.restart()
            assert self.told_of_all(but=name) == others
            return None
        # A refusal is Kinesis's own: nothing fails within.
        assert status in {200, 400}, answer
        return answer if status == 200 else None

    @rule(bytes_left=st.integers(0, 2500))
    def be_killed_soon(self, bytes_left: int) -> None:
        """The process dies in the write by which so many more bytes would have been written."""
        self.bytes_left = bytes_left

    @rule()
    def restarted_it_says_the_same(self) -> None:
        before = self.told_of_all()
        self.restart()
        assert self.told_of_all() == before

    @rule(name=names, shards=st.one_of(st.none(), st.integers(1, 3)))
    def create(self, name: str, shards: int | None) -> None:
        sized = {} if shards is None else {"ShardCount": shards}
        before = self.summary(name)
        answer = self.change("CreateStream", name, StreamName=name, Tags={"a": "b"}, **sized)
        if answer is not None or (not before and self.is_there(name)):
            self.model[name] = Stream()

    @rule(name=names)
    def delete(self, name: str) -> None:
        known = self.model.pop(name, None)
        answer = self.change("DeleteStream", name, StreamName=name, EnforceConsumerDeletion=True)
        if answer is None and known and self.is_there(name):
            self.model[name] = known

    @rule(name=names, count=st.integers(1, 12), size=st.integers(0, 60))
    def put(self, name: str, count: int, size: int) -> None:
        sent = [b"%06d" % (self.serial + i) + b"x" * size for i in range(count)]
        self.serial += count
        entries = [{"Data": base64.b64encode(data).decode(), "PartitionKey": data[:6].decode()} for data in sent]
        answer = self.change("PutRecords", name, StreamName=name, Records=entries)
        if answer is None:
            self.unanswered.update(sent)
            return
        self.model[name].records += [
            Record(result["ShardId"], result["SequenceNumber"], data, self.clock.now_ms())
            for result, data in zip(answer["Records"], sent, strict=True)
        ]

    def open_shards(self, name: str) -> list[dict[str, Any]]:
        with self.spared():
            status, answer = self.request("ListShards", StreamName=name, ShardFilter={"Type": "AT_LATEST"})
        if status != 200:
            return []
        return sorted(answer["Shards"], key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))

    @rule(name=names, data=st.data())
    def split(self, name: str, data: st.DataObject) -> None:
        opened = self.open_shards(name)
        if opened:
            chosen = data.draw(st.sampled_from(opened))
            middle = sum(int(key) for key in chosen["HashKeyRange"].values()) // 2
            where = {"ShardToSplit": chosen["ShardId"], "NewStartingHashKey": str(middle)}
            self.change("SplitShard", name, StreamName=name, **where)

    @rule(name=names, data=st.data())
    def merge(self, name: str, data: st.DataObject) -> None:
        opened = [shard["ShardId"] for shard in self.open_shards(name)]
        if len(opened) > 1:
            place = data.draw(st.integers(1, len(opened) - 1))
            where = {"ShardToMerge": opened[place - 1], "AdjacentShardToMerge": opened[place]}
            self.change("MergeShards", name, StreamName=name, **where)

    @rule(name=names, count=st.integers(1, 6))
    def scale(self, name: str, count: int) -> None:
        wanted = {"TargetShardCount": count, "ScalingType": "UNIFORM_SCALING"}
        self.change("UpdateShardCount", name, StreamName=name, **wanted)

    @rule(name=names, hours=st.sampled_from([24, 30, 48]))
    def retain(self, name: str, hours: int) -> None:
        stream = self.model.get(name)
        if stream is None:
            return
        longer = hours >= stream.retention_hours
        operation = "IncreaseStreamRetentionPeriod" if longer else "DecreaseStreamRetentionPeriod"
        self.change(operation, name, StreamName=name, RetentionPeriodHours=hours)
        told = self.summary(name)["RetentionPeriodHours"]
        assert told in {hours, stream.retention_hours}
        stream.retain(told, self.clock.now_ms())

    @rule(name=names, tag=st.sampled_from("abc"), value=st.sampled_from("xy"))
    def tag(self, name: str, tag: str, value: str) -> None:
        self.change("AddTagsToStream", name, StreamName=name, Tags={tag: value})

    @rule(name=names, number=st.integers(0, 2))
    def register(self, name: str, number: int) -> None:
        arn = self.application.account.arn(name)
        self.change("RegisterStreamConsumer", name, StreamARN=arn, ConsumerName=f"lake-{number}")

    @rule(passed_ms=st.sampled_from([1, 1000, 5_000, 90_000, 23 * HOUR_MS, 30 * HOUR_MS]))
    def time_passes(self, passed_ms: int) -> None:
        self.clock.advance(passed_ms)
        try:
            self.application.settle()
        except KilledError:
            self.restart()

    @invariant()
    def what_was_acknowledged_is_there_once_and_in_order(self) -> None:
        told = self.told_of_all()
        for name, stream in self.model.items():
            status, answer = told[name]["records"]
            assert status == 200
            found = [
                (record["ShardId"], record["SequenceNumber"], base64.b64decode(record["Data"]))
                for record in answer["records"]
            ]
            numbers = [(shard, int(number)) for shard, number, _ in found]
            assert numbers == sorted(set(numbers))
            sure = [record for record in found if record[2] not in self.unanswered]
            expected = [(record.shard, record.sequence, record.data) for record in stream.retained(self.clock.now_ms())]
            assert sure == sorted(expected, key=lambda record: (record[0], int(record[1])))


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=settings().max_examples * 2 // 5, stateful_step_count=40)
