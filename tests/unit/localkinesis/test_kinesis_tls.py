"""TLS: certificates given or made, HTTP/1.1 and HTTP/2 over ALPN."""

from __future__ import annotations

import errno
import socket
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import pytest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, SSLError

from lakestream_localkinesis.errors import SettingsError
from lakestream_localkinesis.testing import LocalKinesis, connect, local_kinesis
from lakestream_localkinesis.tls import server_context

LIST_STREAMS = "Kinesis_20131202.ListStreams"


def secured(server: LocalKinesis, *protocols: str) -> ssl.SSLSocket:
    address = urlsplit(server.endpoint)
    context = ssl.create_default_context(cafile=server.certificate)
    context.set_alpn_protocols(list(protocols))
    plain = socket.create_connection((address.hostname, address.port), timeout=60)
    return context.wrap_socket(plain, server_hostname=address.hostname)


def test_boto3_and_the_control_endpoint_trust_a_certificate_that_was_made(tmp_path: Path):
    with local_kinesis(tls=tmp_path / "made") as server:
        assert server.endpoint.startswith("https://")
        server.create_stream("orders")
        client = server.client()
        client.put_record(StreamName="orders", Data=b"x" * 1_000_000, PartitionKey="k")
        [stored] = connect(server.endpoint, certificate=server.certificate).records("orders")
        assert stored.data == b"x" * 1_000_000
        consumer = client.register_stream_consumer(
            StreamARN="arn:aws:kinesis:us-east-1:000000000000:stream/orders", ConsumerName="lake"
        )["Consumer"]["ConsumerARN"]
        events = client.subscribe_to_shard(
            ConsumerARN=consumer, ShardId="shardId-000000000000", StartingPosition={"Type": "TRIM_HORIZON"}
        )["EventStream"]
        [record] = next(iter(events))["SubscribeToShardEvent"]["Records"]
        events.close()
        assert record["Data"] == b"x" * 1_000_000
        assert server.environment()["AWS_CA_BUNDLE"] == str(tmp_path / "made/tls.crt")
    assert (tmp_path / "made/tls.key").stat().st_mode & 0o077 == 0


def test_who_does_not_trust_it_does_not_get_through(tmp_path: Path):
    with local_kinesis(tls=tmp_path) as server:
        with pytest.raises(SSLError):
            connect(server.endpoint).client().list_streams()
        # The server serves on.
        assert server.client().list_streams()["StreamNames"] == []


def test_http2_is_chosen_by_alpn(tmp_path: Path):
    with local_kinesis(tls=tmp_path) as server, secured(server, "h2", "http/1.1") as sock:
        assert sock.selected_alpn_protocol() == "h2"
        client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        client.initiate_connection()
        headers = [(":method", "POST"), (":path", "/"), (":scheme", "https"), (":authority", "x")]
        client.send_headers(1, [*headers, ("x-amz-target", LIST_STREAMS)])
        client.send_data(1, b"{}", end_stream=True)
        sock.sendall(client.data_to_send())
        data, ended = b"", False
        while not ended:
            for event in client.receive_data(sock.recv(65536)):
                data += event.data if isinstance(event, h2.events.DataReceived) else b""
                ended = ended or isinstance(event, h2.events.StreamEnded)

    assert b'"StreamNames":[]' in data


def test_http1_is_chosen_by_alpn(tmp_path: Path):
    with local_kinesis(tls=tmp_path) as server, secured(server, "http/1.1") as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"
        sock.sendall(f"POST / HTTP/1.1\r\nX-Amz-Target: {LIST_STREAMS}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        data = b""
        while b"StreamNames" not in data:
            data += sock.recv(65536)

    assert data.startswith(b"HTTP/1.1 200 OK")


def test_a_connection_that_is_dropped_ends_for_the_client_as_well(tmp_path: Path):
    with local_kinesis(tls=tmp_path) as server:
        server.faults.drop("ListStreams", times=1)
        client = server.client()
        with pytest.raises((ConnectionClosedError, SSLError, EndpointConnectionError)):
            client.list_streams()
        assert client.list_streams()["StreamNames"] == []


def test_a_certificate_that_is_given_is_kept(tmp_path: Path):
    server_context(tmp_path, "127.0.0.1")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    server_context(tmp_path, "example.org")

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert set(files) == {"tls.crt", "tls.key"}


def test_a_disk_that_was_full_leaves_no_half_of_what_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The key was there without the certificate, and each later start refused the folder for it."""
    write = Path.write_bytes

    def write_keys_alone(path: Path, data: bytes) -> int:
        if "crt" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write_keys_alone)
        with pytest.raises(SettingsError, match="No space left"):
            server_context(tmp_path, "127.0.0.1")

    server_context(tmp_path, "127.0.0.1")

    assert {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}["tls.key"] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"tls.crt", "tls.key"}


def test_folders_that_cannot_be_used_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "half").mkdir()
    (tmp_path / "half/tls.key").touch()
    (tmp_path / "bad").mkdir()
    for name in ("tls.crt", "tls.key"):
        (tmp_path / "bad" / name).write_text("no PEM")
    (tmp_path / "file").touch()

    for folder in ("half", "bad", "file"):
        with pytest.raises(SettingsError, match=str(tmp_path / folder)):
            server_context(tmp_path / folder, "127.0.0.1")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SettingsError, match=r"install lakestream-localkinesis\[tls\]"):
        server_context(tmp_path / "new", "127.0.0.1")
