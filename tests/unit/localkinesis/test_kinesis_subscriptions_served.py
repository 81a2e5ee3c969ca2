"""Subscriptions over real connections: boto3 over HTTP/1.1, the h2 library over HTTP/2."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import orjson
import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import EventStreamError
from urllib3.exceptions import ProtocolError

from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
SHARD = "shardId-000000000000"


@pytest.fixture
def server() -> Iterator[LocalKinesis]:
    with local_kinesis(limits=Limits.none()) as server:
        # Events without records, which come after five seconds of silence, do not come on a slow machine either.
        server.clock.freeze()
        server.create_stream("orders")
        yield server


def consumer(server: LocalKinesis, name: str = "lake") -> str:
    return server.client().register_stream_consumer(StreamARN=ARN, ConsumerName=name)["Consumer"]["ConsumerARN"]


@contextmanager
def subscription(client: KinesisClient, arn: str) -> Iterator[Iterator[dict[str, Any]]]:
    answer = client.subscribe_to_shard(ConsumerARN=arn, ShardId=SHARD, StartingPosition={"Type": "TRIM_HORIZON"})
    with closing(answer["EventStream"]):
        yield (event["SubscribeToShardEvent"] for event in answer["EventStream"])


def test_boto3_reads_what_is_put_while_it_listens(server: LocalKinesis):
    client = server.client()
    got: list[bytes] = []
    with subscription(client, consumer(server)) as events:
        assert next(events)["Records"] == []
        for number in range(3):
            client.put_record(StreamName="orders", Data=b"%d" % number, PartitionKey="k")
            got += [record["Data"] for record in next(events)["Records"]]
        client.split_shard(StreamName="orders", ShardToSplit=SHARD, NewStartingHashKey=str(2**127))
        [last] = list(events)

    assert got == [b"0", b"1", b"2"]
    assert len(last["ChildShards"]) == 2


def test_a_connection_serves_on_when_the_five_minutes_are_over(server: LocalKinesis):
    request = b"POST / HTTP/1.1\r\nX-Amz-Target: Kinesis_20131202.%b\r\nContent-Length: %d\r\n\r\n%b" % (
        b"SubscribeToShard",
        len(body := subscribe_body(consumer(server))),
        body,
    )
    following = b"POST / HTTP/1.1\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\nContent-Length: 2\r\n\r\n{}"
    address = urlsplit(server.endpoint)
    with socket.create_connection((address.hostname, address.port), timeout=60) as sock:
        sock.sendall(request + following)
        data = b""
        while b"SubscribeToShardEvent" not in data:
            data += sock.recv(65536)
        assert b"StreamNames" not in data
        server.clock.advance(300)
        while b"StreamNames" not in data:
            data += sock.recv(65536)

    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert b"Content-Length" not in head
    assert b"\r\n0\r\n\r\nHTTP/1.1 200 OK" in rest


def test_who_is_taken_over_is_told(server: LocalKinesis):
    arn = consumer(server)
    client = server.client()
    with subscription(client, arn) as first:
        next(first)
        server.clock.advance(5)
        with subscription(client, arn) as second:
            next(second)
            with pytest.raises(EventStreamError, match="ResourceInUseException"):
                list(first)


def test_the_server_stops_with_subscriptions_open():
    with local_kinesis() as server:
        server.create_stream("orders")
        client = server.client()
        arn = client.register_stream_consumer(StreamARN=ARN, ConsumerName="lake")["Consumer"]["ConsumerARN"]
        answer = client.subscribe_to_shard(ConsumerARN=arn, ShardId=SHARD, StartingPosition={"Type": "LATEST"})
        next(iter(answer["EventStream"]))
    with closing(answer["EventStream"]), pytest.raises(ProtocolError):
        list(answer["EventStream"])


def subscribe_body(arn: str) -> bytes:
    return orjson.dumps({"ConsumerARN": arn, "ShardId": SHARD, "StartingPosition": {"Type": "TRIM_HORIZON"}})


class H2Client:
    """HTTP/2 with prior knowledge, several subscriptions on one connection."""

    def __init__(self, endpoint: str) -> None:
        address = urlsplit(endpoint)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=60)
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._connection.initiate_connection()
        self._frames: dict[int, EventStreamBuffer] = {}
        self.ended: set[int] = set()

    def subscribe(self, arn: str) -> int:
        stream_id = self._connection.get_next_available_stream_id()
        headers = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        headers += [("x-amz-target", "Kinesis_20131202.SubscribeToShard")]
        self._connection.send_headers(stream_id, headers)
        self._connection.send_data(stream_id, subscribe_body(arn), end_stream=True)
        self._frames[stream_id] = EventStreamBuffer()
        return stream_id

    def reset(self, stream_id: int) -> None:
        self._connection.reset_stream(stream_id)
        del self._frames[stream_id]

    def records(self, stream_id: int, count: int) -> list[str]:
        """Wait for so many records of a stream; their partition keys."""
        keys: list[str] = []
        while len(keys) < count:
            self.receive()
            for frame in self._frames[stream_id]:
                keys += [record["PartitionKey"] for record in orjson.loads(frame.payload).get("Records", ())]
        return keys

    def receive(self) -> None:
        self._socket.sendall(self._connection.data_to_send())
        for event in self._connection.receive_data(self._socket.recv(65536)):
            if isinstance(event, h2.events.DataReceived) and event.stream_id in self._frames:
                self._connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self._frames[event.stream_id].add_data(event.data)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended.add(event.stream_id)
        self._socket.sendall(self._connection.data_to_send())

    def close(self) -> None:
        self._socket.close()


def test_subscriptions_share_a_connection_of_http2(server: LocalKinesis):
    boto = server.client()
    arns = [consumer(server, name) for name in ("a", "b", "c")]
    client = H2Client(server.endpoint)
    first, given_up, last = (client.subscribe(arn) for arn in arns)
    # More than a client's credit at the start, which is 64 KiB.
    large = "x" * 100_000
    for number in range(5):
        boto.put_record(StreamName="orders", Data=large, PartitionKey=str(number))

    assert client.records(first, 5) == list("01234")
    client.reset(given_up)
    assert client.records(last, 5) == list("01234")
    boto.split_shard(StreamName="orders", ShardToSplit=SHARD, NewStartingHashKey=str(2**127))
    while client.ended != {first, last}:
        client.receive()
    client.close()
