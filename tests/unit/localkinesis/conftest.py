"""The application without sockets, under a clock that stands still until it is driven."""

from __future__ import annotations

import base64
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import EventStreamJSONParser

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.control import Control
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.clock import DrivenClock, SystemClock
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.eventstream import EventStream
from lakestream_localkinesis.faults import FaultPlan
from lakestream_localkinesis.http import Request, Response
from lakestream_localkinesis.journal.journal import Journal

MODEL = ServiceModel(Loader().load_service_model("kinesis", "service-2"), "kinesis")
EVENTS = MODEL.shape_for("SubscribeToShardEventStream")
START_MS = 1_700_000_000_000


class RefusedError(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Api:
    """Calls operations as a client does, JSON in and out."""

    application: Application
    clock: DrivenClock
    faults: FaultPlan

    def respond(self, operation: str, **fields: Any) -> Response:
        headers = {"x-amz-target": f"Kinesis_20131202.{operation}", "content-type": "application/x-amz-json-1.1"}
        return self.application.handle(Request("POST", "/", headers, orjson.dumps(fields)))

    def call(self, operation: str, **fields: Any) -> dict[str, Any]:
        response = self.respond(operation, **fields)
        answer = orjson.loads(response.body) if response.body else {}
        if response.status != 200:
            raise RefusedError(response.status, answer["__type"], answer.get("message") or answer["Message"])
        return answer

    def refused(self, operation: str, **fields: Any) -> RefusedError:
        with pytest.raises(RefusedError) as caught:
            self.call(operation, **fields)
        return caught.value

    @staticmethod
    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    @staticmethod
    def payloads(page: dict[str, Any]) -> list[bytes]:
        return [base64.b64decode(record["Data"]) for record in page["Records"]]

    def put(self, stream: str, data: bytes, key: str = "key", **fields: Any) -> dict[str, Any]:
        return self.call("PutRecord", StreamName=stream, Data=self.encoded(data), PartitionKey=key, **fields)

    def put_many(self, stream: str, *records: tuple[bytes, str]) -> dict[str, Any]:
        entries = [{"Data": self.encoded(data), "PartitionKey": key} for data, key in records]
        return self.call("PutRecords", StreamName=stream, Records=entries)

    def shards(self, stream: str, **fields: Any) -> list[dict[str, Any]]:
        return self.call("ListShards", StreamName=stream, **fields)["Shards"]

    def iterator(self, stream: str, shard: str, kind: str = "TRIM_HORIZON", **fields: Any) -> str:
        return self.call("GetShardIterator", StreamName=stream, ShardId=shard, ShardIteratorType=kind, **fields)[
            "ShardIterator"
        ]

    def read(self, iterator: str, **fields: Any) -> dict[str, Any]:
        return self.call("GetRecords", ShardIterator=iterator, **fields)

    def read_all(self, stream: str, shard: str) -> list[bytes]:
        """All data of a shard, following pages until the tip or the end."""
        iterator: str | None = self.iterator(stream, shard)
        data: list[bytes] = []
        while iterator:
            page = self.read(iterator)
            data += self.payloads(page)
            iterator = page["NextShardIterator"] if page["MillisBehindLatest"] else None
        return data


@dataclass
class Subscriber:
    """A client of a subscription: frames are read by botocore's own parser."""

    api: Api
    events: EventStream

    def poll(self) -> dict[str, Any] | None:
        """The event that is due, if any; an exception comes as {"Code": …, "Message": …}."""
        data = self.events.poll(self.api.clock.now_ms())
        if not data:
            return None
        frames = EventStreamBuffer()
        frames.add_data(data)
        [frame] = list(frames)
        response = frame.to_response_dict()
        parsed = EventStreamJSONParser().parse(response, EVENTS)
        return parsed.get("Error") or parsed.get("SubscribeToShardEvent") or parsed

    def pages(self) -> Iterator[dict[str, Any]]:
        """Events until none is due."""
        while not self.events.ended:
            event = self.poll()
            if event is None:
                return
            yield event


def subscribe(api: Api, consumer: str, shard: str, kind: str = "TRIM_HORIZON", **position: Any) -> Subscriber:
    """A subscription that has begun."""
    start = {"Type": kind, **position}
    response = api.respond("SubscribeToShard", ConsumerARN=consumer, ShardId=shard, StartingPosition=start)
    assert response.status == 200, response.body
    assert response.events is not None
    subscriber = Subscriber(api, response.events)
    assert subscriber.poll() == {}
    return subscriber


def build_api(settings: AccountSettings) -> Api:
    clock = DrivenClock(SystemClock(), frozen_at_ms=START_MS)
    faults = FaultPlan()
    return Api(Application(Account(settings), clock, Control(clock, faults)), clock, faults)


class Disk:
    """Writes as `os.write` does, until it is full."""

    def __init__(self) -> None:
        self.free: int | None = None

    def write(self, descriptor: int, data: memoryview) -> int:
        if self.free is None:
            return os.write(descriptor, data)
        if not self.free:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = os.write(descriptor, data[: self.free])
        self.free -= written
        return written


class Host:
    """A machine with a folder, on which one server runs after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = DrivenClock(SystemClock(), frozen_at_ms=START_MS)
        self.disk = Disk()
        self._running: Journal | None = None

    def start(self, settings: AccountSettings | None = None, segment_bytes: int = 1 << 20) -> Api:
        """End the server that runs, if any, and start the next."""
        self.stop()
        chosen = settings or AccountSettings(limits=Limits.none())
        now_ms = self.clock.now_ms()
        self._running = Journal(self.folder, chosen, now_ms, segment_bytes=segment_bytes, write=self.disk.write)
        faults = FaultPlan()
        control = Control(self.clock, faults)
        return Api(Application(self._running.account, self.clock, control, self._running), self.clock, faults)

    def stop(self) -> None:
        if self._running:
            self._running.close()
        self._running = None

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.journal"))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A machine with a folder for data."""
    host = Host(tmp_path / "data")
    yield host
    host.stop()


@pytest.fixture
def api() -> Api:
    """An account without rates; sizes and rules hold."""
    return build_api(AccountSettings(limits=Limits.none()))


@pytest.fixture
def limited() -> Api:
    """An account with Kinesis's rates."""
    return build_api(AccountSettings())


@pytest.fixture
def slow() -> Api:
    """An account whose streams take 10 s to change."""
    return build_api(AccountSettings(limits=Limits.none(), transition_ms=10_000))
