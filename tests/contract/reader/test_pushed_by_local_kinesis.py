"""Ranges that Kinesis pushes over HTTP/2: the records that are asked for, or they are asked for."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from lakestream.errors import SettingsError
from lakestream.kinesis import HttpKinesisClient, KinesisSettings, RangeReader, RecordPage
from lakestream.kinesis.consumer import require_consumer
from lakestream.kinesis.port import Subscribe
from lakestream.model import Finding, Position, ShardRange, after, at
from lakestream.testing.consumer import Consume
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.eventstream import render_frame
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

RECORDS = 3000
HELD = timedelta(seconds=5)
"""For so long a consumer has a shard for itself."""


@dataclass
class Lake:
    """A stream of one shard with a backlog, the range that has it all, and a consumer."""

    client: HttpKinesisClient
    settings: KinesisSettings
    arn: str
    piece: ShardRange
    asked: int = 0
    """Calls of GetRecords for the last read."""

    @property
    def subscribe(self) -> Subscribe:
        return partial(self.client.subscribe, self.arn)

    def read(self, subscribe: Subscribe | None = None) -> list[bytes]:
        reader = RangeReader(self.client, self.settings, subscribe=subscribe or self.subscribe)
        with patch.object(self.client, "get_records", wraps=self.client.get_records) as asked:
            parts = [part for part in reader.read(self.piece) if not isinstance(part, Finding)]
        self.asked = asked.call_count
        return [data for part in parts for data in part.column("data").to_pylist()]


class _Broken(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, says: Callable[[socket.socket], None]) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._says = says

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError):
            self._says(request)


@contextmanager
def broken(says: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says something else; its URL."""
    with _Broken(says) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def filled(server: LocalKinesis, stream: str, consume: Consume) -> Lake:
    server.create_stream(stream, shards=1)
    kinesis = server.client()
    for start in range(0, RECORDS, 500):
        kinesis.put_records(
            StreamName=stream,
            Records=[{"Data": b"%d" % number, "PartitionKey": "k"} for number in range(start, start + 500)],
        )
    server.clock.advance(timedelta(seconds=2))
    consumer = consume(stream)
    consumer.plan()
    (piece,) = consumer.ranges
    summary = consumer.client.describe_stream_summary()
    made = kinesis.register_stream_consumer(StreamARN=summary.arn, ConsumerName="lake")["Consumer"]
    server.clock.advance(timedelta(seconds=2))
    assert consumer.client.describe_consumer(made["ConsumerARN"]).status == "ACTIVE"
    return Lake(consumer.client, consumer.settings, made["ConsumerARN"], piece)


@pytest.fixture
def lake(server: LocalKinesis, consume: Consume, request: pytest.FixtureRequest) -> Lake:
    server.clock.resume()
    return filled(server, f"pushed-{abs(hash(request.node.name))}", consume)


EVERYTHING = [b"%d" % number for number in range(RECORDS)]


def test_a_range_is_pushed_and_none_of_it_is_asked_for(lake: Lake, server: LocalKinesis) -> None:
    assert lake.read() == EVERYTHING
    assert lake.asked == 0
    lake.piece = replace(lake.piece, end=at(int(server.records(lake.settings.stream)[10].sequence_number)))
    server.clock.advance(HELD)
    assert (lake.read(), lake.asked) == (EVERYTHING[:10], 0)


def test_who_was_subscribed_just_now_asks(lake: Lake, server: LocalKinesis) -> None:
    server.clock.freeze()
    assert (lake.read(), lake.asked) == (EVERYTHING, 0)
    assert (lake.read(), lake.asked > 0) == (EVERYTHING, True)
    server.clock.advance(HELD)
    assert (lake.read(), lake.asked) == (EVERYTHING, 0)
    server.clock.resume()


def cut(page: RecordPage, count: int) -> RecordPage:
    """Its first records, behind which there are others."""
    columns = (page.sequences, page.arrivals, page.partition_keys, page.data)
    return RecordPage(*(column[:count] for column in columns), "more", 1)  # type: ignore[call-arg, arg-type]


def test_who_loses_the_subscription_to_another_one_asks_for_the_rest(lake: Lake, server: LocalKinesis) -> None:
    def overtaken(shard_id: str, start: Position) -> Iterator[RecordPage]:
        pushed = lake.subscribe(shard_id, start)
        yield cut(next(pushed), 100)
        server.clock.advance(HELD)
        next(lake.subscribe(shard_id, start))
        server.client().put_record(StreamName=lake.settings.stream, Data=b"behind", PartitionKey="k")
        for page in pushed:
            assert not page.sequences, "it was pushed on"
        raise AssertionError("it ended without a word")

    assert (lake.read(overtaken), lake.asked > 0) == (EVERYTHING, True)


def test_a_shard_that_was_closed_is_pushed_to_its_end(server: LocalKinesis, consume: Consume) -> None:
    lake = filled(server, "pushed-closed", consume)
    server.client().split_shard(
        StreamName="pushed-closed", ShardToSplit=lake.piece.shard_id, NewStartingHashKey=str(2**127)
    )
    server.clock.advance(timedelta(seconds=2))
    # As of a plan by whose end the shard had been closed.
    lake.piece = replace(lake.piece, end=after(lake.piece.end.sequence + 1), closes_shard=True)
    assert (lake.read(), lake.asked) == (EVERYTHING, 0)


def test_a_consumer_that_is_gone_costs_no_record(lake: Lake, server: LocalKinesis) -> None:
    server.client().deregister_stream_consumer(ConsumerARN=lake.arn)
    server.clock.advance(timedelta(seconds=2))
    assert (lake.read(), lake.asked > 0) == (EVERYTHING, True)


@pytest.mark.parametrize("fault", ["drop", "drop_before", "internal_failure"])
def test_a_subscription_that_fails_is_none(lake: Lake, server: LocalKinesis, fault: str) -> None:
    getattr(server.faults, fault)("SubscribeToShard", times=1)
    assert (lake.read(), lake.asked > 0) == (EVERYTHING, True)
    server.faults.clear()


def test_what_is_pushed_is_encrypted_where_kinesis_is(
    tmp_path: Path, consume: Consume, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_kinesis(tls=tmp_path, limits=Limits.none()) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        lake = filled(server, "orders", partial(consume, endpoint=server.endpoint))
        assert (lake.read(), lake.asked) == (EVERYTHING, 0)


def test_a_consumer_is_looked_for_before_anything_is_read(lake: Lake, server: LocalKinesis) -> None:
    stream, field = lake.client.describe_stream_summary().arn, "spec.writers[0].consumerArn"
    require_consumer(lake.arn, stream, lake.client.describe_consumer, field)
    server.client().deregister_stream_consumer(ConsumerARN=lake.arn)
    server.clock.advance(timedelta(seconds=2))
    with pytest.raises(SettingsError, match=r"^spec.writers\[0\].consumerArn: Kinesis knows no consumer "):
        require_consumer(lake.arn, stream, lake.client.describe_consumer, field)


def _closes(connection: socket.socket) -> None:
    connection.recv(1 << 16)


def _says_nothing(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def _speaks_http_1(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    _says_nothing(connection)


def answering(status: str, body: bytes, *, ends: bool = True) -> Callable[[socket.socket], None]:
    def says(connection: socket.socket) -> None:
        server = H2Connection(H2Configuration(client_side=False))
        server.initiate_connection()
        connection.sendall(server.data_to_send())
        while data := connection.recv(1 << 16):
            for event in server.receive_data(data):
                if isinstance(event, StreamEnded) and event.stream_id:
                    server.send_headers(event.stream_id, [(":status", status)])
                    server.send_data(event.stream_id, body)
                    if ends:
                        server.end_stream(event.stream_id)
                    else:
                        server.reset_stream(event.stream_id, error_code=2)
            connection.sendall(server.data_to_send())

    return says


def event(payload: bytes) -> bytes:
    return render_frame({":message-type": "event", ":event-type": "SubscribeToShardEvent"}, payload)


FAILED = render_frame({":message-type": "exception", ":exception-type": "InternalFailureException"}, b"{}")


NOTHING = event(b'{"Records":[],"MillisBehindLatest":5,"ContinuationSequenceNumber":"1"}')
WRONG = (
    _closes,
    _says_nothing,
    _speaks_http_1,
    answering("503", b"<html>"),
    answering("400", b'{"__type":"LimitExceededException","message":"too many"}'),
    answering("200", b""),
    answering("200", NOTHING),
    answering("200", NOTHING, ends=False),
    answering("200", NOTHING[:-1] + b"?"),
    answering("200", b"no frames, but a text that is long enough to have the lengths of one in it"),
    answering("200", event(b'{"Records":[{"Data":"!"}],"MillisBehindLatest":5}')),
    answering("200", event(b"{")),
    answering(
        "200", render_frame({":message-type": "exception", ":exception-type": "InternalFailureException"}, b"{}")
    ),
    answering("200", render_frame({":message-type": "error", ":error-code": "500", ":error-message": "?"}, b"")),
)


def test_what_is_no_subscription_costs_no_record(lake: Lake) -> None:
    for number, says in enumerate(WRONG):
        with broken(says) as endpoint:
            client = HttpKinesisClient(replace(lake.settings, endpoint=endpoint, timeout=0.5))
            try:
                assert (lake.read(partial(client.subscribe, lake.arn)), lake.asked > 0) == (EVERYTHING, True), number
            finally:
                client.close()
