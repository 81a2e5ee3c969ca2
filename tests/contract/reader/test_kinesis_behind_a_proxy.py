"""Kinesis behind a proxy that alone knows where it is, and asks who wants to know."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from lakestream.errors import KinesisUnavailableError
from lakestream.kinesis.client import HttpKinesisClient
from lakestream.kinesis.settings import KinesisSettings
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis
from lakestream_localkinesis.tls import server_context

HOST = "kinesis.test"
"""No name server knows it."""
PASSWORD = "open sesame"


class _Asked(socketserver.StreamRequestHandler):
    """Tunnels to one host, or forwards to it, for whoever has the password."""

    timeout: ClassVar[float] = 60
    server: Proxy

    def handle(self) -> None:
        method, target, version = self.rfile.readline().decode().split()
        head = list(iter(self.rfile.readline, b"\r\n"))
        self.server.asked.append(f"{method} {target} {version}")
        known = b"Basic " + base64.b64encode(f"me:{PASSWORD}".encode())
        if not any(line.lower().startswith(b"proxy-authorization:") and known in line for line in head):
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            if method == "CONNECT":
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                own = b"".join(line for line in head if not line.lower().startswith(b"proxy-"))
                there.sendall(f"{method} {urlsplit(target).path} {version}\r\n".encode() + own + b"\r\n")
            back = threading.Thread(target=_copy, args=(there, self.connection))
            back.start()
            # What has been read of the request behind its head.
            there.sendall(self.rfile.peek() if method != "CONNECT" else b"")
            _copy(self.connection, there)
            back.join()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while part := one.recv(1 << 16):
            other.sendall(part)
        other.shutdown(socket.SHUT_WR)


class Proxy(socketserver.ThreadingTCPServer):
    """To the port of a host that it is told of."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.asked: list[str] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Proxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,))
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


@contextmanager
def client_of(endpoint: str, server: LocalKinesis, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpKinesisClient]:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    client = HttpKinesisClient(KinesisSettings("orders", server.region, endpoint, patience=0.2))
    try:
        yield client
    finally:
        client.close()


def test_kinesis_is_asked_through_a_tunnel_that_is_kept(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server_context(tmp_path, HOST)
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD.replace(' ', '%20')}@{proxy.address}")
    with local_kinesis(tls=tmp_path) as server:
        server.create_stream("orders", shards=3)
        proxy.port = urlsplit(server.endpoint).port or 0
        with client_of(f"https://{HOST}", server, monkeypatch) as client:
            assert client.describe_stream_summary().arn.endswith("stream/orders")
            assert len(client.list_shards()) == 3
    assert proxy.asked == [f"CONNECT {HOST}:443 HTTP/1.1"]


def test_plain_requests_are_forwarded(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{PASSWORD.replace(' ', '%20')}@{proxy.address}")
    with local_kinesis() as server:
        server.create_stream("orders", shards=3)
        proxy.port = urlsplit(server.endpoint).port or 0
        with client_of(f"http://{HOST}:4567", server, monkeypatch) as client:
            assert len(client.list_shards()) == 3
    assert proxy.asked == [f"POST http://{HOST}:4567/ HTTP/1.1"]


def test_a_proxy_that_refuses_or_is_away_is_named_without_its_password(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_kinesis() as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:wrong@{proxy.address}")
        with (
            client_of(f"https://{HOST}", server, monkeypatch) as client,
            pytest.raises(KinesisUnavailableError, match=f"by the proxy {proxy.address}: .*407 Proxy Auth") as refused,
        ):
            client.list_shards()
        monkeypatch.setenv("HTTPS_PROXY", "http://me:wrong@127.0.0.1:1")
        with (
            client_of(f"https://{HOST}", server, monkeypatch) as client,
            pytest.raises(KinesisUnavailableError, match=r"by the proxy 127\.0\.0\.1:1: .*refused"),
        ):
            client.list_shards()
    assert "wrong" not in str(refused.value)


def test_what_is_no_proxy_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, proxy: Proxy) -> None:
    with local_kinesis() as server, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")
        talking = threading.Thread(target=_talk_otherwise, args=(other,))
        talking.start()
        with (
            client_of(f"https://{HOST}", server, monkeypatch) as client,
            pytest.raises(KinesisUnavailableError, match=rf"by the proxy 127\.0\.0\.1:{port}: SSH-2\.0") as told,
        ):
            client.list_shards()
        other.shutdown(socket.SHUT_RDWR)
        talking.join()
    assert "\n" not in str(told.value)


def _talk_otherwise(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                connection.recv(1 << 16)


def test_what_needs_no_proxy_is_asked_directly(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
    with local_kinesis() as server:
        server.create_stream("orders", shards=3)
        with client_of(server.endpoint, server, monkeypatch) as client:
            assert len(client.list_shards()) == 3
    assert proxy.asked == []
