"""The server on real sockets, and the handle that tests hold on it."""

from __future__ import annotations

import asyncio
import resource
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import psutil
import pytest

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.clock import SystemClock
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.errors import SettingsError, StartupError
from lakestream_localkinesis.server import Address, Server
from lakestream_localkinesis.testing import LocalKinesis, connect, local_kinesis

LIST_STREAMS = (
    b"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\n"
    b"Content-Type: application/x-amz-json-1.1\r\nContent-Length: 2\r\n\r\n{}"
)


@pytest.fixture
def server() -> Iterator[LocalKinesis]:
    with local_kinesis(limits=Limits.none()) as server:
        yield server


def connection(server: LocalKinesis) -> socket.socket:
    address = urlsplit(server.endpoint)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def listening() -> set[int]:
    """The ports that this process listens on."""
    own = psutil.Process().net_connections("tcp4")
    return {one.laddr.port for one in own if one.status == psutil.CONN_LISTEN}


def test_it_starts_on_a_free_port_and_stops(server: LocalKinesis):
    with local_kinesis() as other:
        assert other.endpoint != server.endpoint
        assert urllib.request.urlopen(f"{other.endpoint}/healthz").read() == b"ok\n"
        port = urlsplit(other.endpoint).port
        assert port in listening()
    # Another process may listen there by now.
    assert port not in listening()


@pytest.mark.parametrize(("most", "told"), [(1, 1), (10**9, 0), (resource.RLIM_INFINITY, 0)])
def test_the_last_file_that_may_be_open_is_told_once(
    most: int, told: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Clients were closed at once, and the log said nothing."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
    with local_kinesis() as server:
        for _ in range(2):
            assert urllib.request.urlopen(f"{server.endpoint}/healthz").read() == b"ok\n"
    told_once = (
        f"all {most} files that a process may have open are open (ulimit -n): more connections are closed at once"
    )
    assert [one.message for one in caplog.records if "may have open" in one.message] == [told_once] * told


def test_pipelined_requests_are_answered_in_order(server: LocalKinesis):
    server.faults.latency(0.05, "ListStreams", times=1)
    missing = LIST_STREAMS.replace(b"ListStreams", b"ListNothing")
    with connection(server) as sock:
        sock.sendall(LIST_STREAMS + missing)
        data = b""
        while b"UnknownOperation" not in data:
            data += sock.recv(65536)

    assert data.index(b"StreamNames") < data.index(b"UnknownOperation")


def test_an_answer_whose_client_has_gone_is_nobodys(server: LocalKinesis, caplog: pytest.LogCaptureFixture):
    server.faults.latency(0.2, "ListStreams", times=1)
    with connection(server) as sock:
        sock.sendall(LIST_STREAMS)
    # Held back for longer on the same event loop, so it is answered behind the other one.
    server.faults.latency(0.4, "ListStreams", times=1)
    server.client().list_streams()
    assert caplog.text == ""


def test_the_date_follows_the_driven_clock(server: LocalKinesis):
    noon = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
    server.clock.freeze()
    server.clock.set(noon)
    answer = server.client().list_streams()

    assert parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]) == noon
    assert server.clock.now() == noon
    server.clock.advance(timedelta(hours=1))
    server.clock.advance(1.5)
    assert server.clock.now() == noon + timedelta(hours=1, seconds=1.5)
    server.clock.resume()
    assert server.clock.now() >= noon + timedelta(hours=1, seconds=1.5)


def test_an_answer_to_head_has_no_body(server: LocalKinesis):
    # As `wget --spider` and load balancers ask; what comes behind its head would be read as the next answer.
    with connection(server) as sock:
        sock.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        data = b""
        while part := sock.recv(65536):
            data += part

    first, second = data.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nok\n")
    assert b"Content-Length: 3\r\n" in first


def test_a_dropped_connection_is_closed_without_an_answer(server: LocalKinesis):
    server.create_stream("orders")
    server.faults.drop("PutRecord", times=1)
    with connection(server) as sock:
        body = b'{"StreamName":"orders","Data":"MQ==","PartitionKey":"k"}'
        sock.sendall(
            LIST_STREAMS.replace(b"ListStreams", b"PutRecord")
            .replace(b"{}", body)
            .replace(b"Length: 2", b"Length: %d" % len(body))
        )
        with suppress(ConnectionResetError):
            assert sock.recv(65536) == b""

    [record] = server.records("orders")
    assert (record.data, record.partition_key, record.shard_id) == (b"1", "k", "shardId-000000000000")


def test_a_connection_that_asks_to_close_is_closed(server: LocalKinesis):
    with connection(server) as sock:
        sock.sendall(LIST_STREAMS.replace(b"Host: x", b"Connection: close"))
        data = b""
        while part := sock.recv(65536):
            data += part
    assert data.startswith(b"HTTP/1.1 200 OK")


def test_garbage_closes_the_connection(server: LocalKinesis):
    with connection(server) as sock:
        sock.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        assert sock.recv(65536) == b""


def test_a_preface_may_come_in_pieces(server: LocalKinesis):
    with connection(server) as sock:
        sock.sendall(b"PRI * HT")
        sock.sendall(b"TP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        assert sock.recv(9)[3] == 4  # a SETTINGS frame


def test_the_handle_creates_streams_at_any_rate():
    with local_kinesis() as server:
        for number in range(20):
            server.create_stream(f"s{number}", 2)
        server.create_stream("wide", on_demand=True)
        summary = server.client().describe_stream_summary(StreamName="wide")["StreamDescriptionSummary"]
    assert summary["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}


def test_the_handle_refuses_what_makes_no_sense(server: LocalKinesis):
    server.create_stream("orders")
    with pytest.raises(SettingsError, match="already exists"):
        server.create_stream("orders")
    with pytest.raises(SettingsError, match="only goes forward"):
        server.clock.advance(-1)


def test_a_second_handle_on_the_same_server(server: LocalKinesis):
    other = connect(server.endpoint, region="eu-west-1")
    other.create_stream("orders")

    assert server.records("orders") == []
    assert other.environment() == {
        "AWS_ENDPOINT_URL_KINESIS": server.endpoint,
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }


def test_all_addresses_are_those_of_ipv4_and_ipv6():
    async def reach() -> None:
        server = Server(Application(Account(AccountSettings()), SystemClock()), Address("::", 0))
        bound = await server.start()
        for host in ("127.0.0.2", "::1"):
            socket.create_connection((host, bound.port), 60).close()
        await server.stop()

    asyncio.run(reach())


def test_a_port_that_is_taken(server: LocalKinesis):
    port = urlsplit(server.endpoint).port or 0
    application = Application(Account(AccountSettings()), SystemClock())
    with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.1:{port}"):
        asyncio.run(Server(application, Address(port=port)).start())
