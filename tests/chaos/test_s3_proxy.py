"""The proxy before S3: which request meets which fault, and what becomes of it."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

import pytest

from chaos.s3 import Effect, S3Fault, S3Faults, S3Proxy, S3Request


class _Store(BaseHTTPRequestHandler):
    """Takes objects, and gives them back."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(self.objects[self.path])

    def _answer(self, body: bytes) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"tag"')
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def objects() -> dict[str, bytes]:
    return {}


@pytest.fixture
def proxy(objects: dict[str, bytes]) -> Iterator[S3Proxy]:
    handler = type("Handler", (_Store,), {"objects": objects})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with S3Proxy(f"http://127.0.0.1:{server.server_address[1]}", S3Faults(Random(1))) as running:
        yield running
    server.shutdown()
    server.server_close()


def _ask(proxy: S3Proxy, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_client_that_asks_before_it_sends_a_body_is_told_to(proxy: S3Proxy, objects: dict[str, bytes]) -> None:
    host, _, port = proxy.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(b"PUT /bucket/a HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"body")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert objects == {"/bucket/a": b"body"}


def test_without_a_fault_requests_pass(proxy: S3Proxy, objects: dict[str, bytes]) -> None:
    assert _ask(proxy, "PUT", "/b/k?x=1", b"content") == (200, b"")
    assert objects == {"/b/k?x=1": b"content"}
    assert _ask(proxy, "GET", "/b/k?x=1") == (200, b"content")


def test_refusals_have_no_effect_and_end_after_their_times(proxy: S3Proxy, objects: dict[str, bytes]) -> None:
    proxy.faults.add(S3Fault(Effect.REFUSE, times=2))
    assert {_ask(proxy, "PUT", "/b/k", b"1")[0] for _ in range(2)} == {500, 503}
    assert objects == {}
    assert _ask(proxy, "PUT", "/b/k", b"2")[0] == 200


@pytest.mark.parametrize(("effect", "landed"), [(Effect.CUT, {}), (Effect.LOSE_ANSWER, {"/b/k": b"1"})])
def test_an_answer_is_missing_before_or_after_the_effect(
    proxy: S3Proxy, objects: dict[str, bytes], effect: Effect, landed: dict[str, bytes]
) -> None:
    proxy.faults.add(S3Fault(effect, "write", times=1))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        _ask(proxy, "PUT", "/b/k", b"1")
    assert objects == landed


def test_a_request_lands_when_it_is_released(proxy: S3Proxy, objects: dict[str, bytes]) -> None:
    proxy.faults.add(S3Fault(Effect.LATE, "write", times=1, seconds=3600))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        _ask(proxy, "PUT", "/b/k", b"old")
    assert _ask(proxy, "PUT", "/b/k", b"new")[0] == 200
    assert proxy.held == ["PUT /b/k"]
    assert proxy.release() == ["PUT /b/k: 200"]
    assert objects == {"/b/k": b"old"}
    assert proxy.release() == []


@pytest.mark.parametrize(
    ("target", "method", "path", "query", "headers"),
    [
        ("conditional put", "PUT", "/b/k", "", {"if-none-match": "*"}),
        ("complete", "POST", "/b/k", "uploadId=7", {}),
        ("hudi commit", "PUT", "/b/table/.hoodie/timeline/20260131_20260132.deltacommit", "", {}),
        ("hudi commit", "PUT", "/b/table/.hoodie/timeline/20260131_20260132.commit", "", {}),
        ("hudi commit", "PUT", "/b/table/.hoodie/20260131.deltacommit", "", {}),
        ("timeline", "PUT", "/b/table/.hoodie/20260131.commit.requested", "", {}),
        ("timeline", "PUT", "/b/table/.hoodie/timeline/20260131.deltacommit.inflight", "", {}),
        ("archived", "DELETE", "/b/table/.hoodie/20260131.replacecommit", "", {}),
        ("archived", "DELETE", "/b/table/.hoodie/timeline/20260131_20260132.deltacommit", "", {}),
        ("log commit", "PUT", "/b/checkpoint/things/commits/000000000042.json.gz", "", {}),
        ("plan", "PUT", "/b/checkpoint/things/batches/000000000042.json.gz", "", {}),
        ("data", "PUT", "/b/table/day=2026-01-31/x.parquet", "", {}),
        ("read", "HEAD", "/b/k", "", {}),
    ],
)
def test_a_fault_befalls_what_it_is_meant_for(
    target: str, method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    faults = S3Faults(Random(1))
    faults.add(S3Fault(Effect.CUT, target, times=1))
    assert faults.strikes(S3Request("DELETE", "/b/other", "", {})) is None
    assert faults.strikes(S3Request("PUT", "/b/checkpoint/things/identity.json", "", {})) is None
    assert faults.strikes(S3Request(method, path, query, headers)) is not None
    assert faults.strikes(S3Request(method, path, query, headers)) is None
    assert faults.struck == 1


def test_what_was_for_good_is_for_so_many_requests_more_once_it_is_bounded() -> None:
    faults = S3Faults(Random(1))
    for fault in (
        S3Fault(Effect.FORBID, "delete"),
        S3Fault(Effect.FORBID, "delete", times=1),
        S3Fault(Effect.CUT, "read"),
    ):
        faults.add(fault)
    faults.bound(Effect.FORBID, 2)
    delete, read = (S3Request(method, "/b/k", "", {}) for method in ("DELETE", "GET"))
    assert [faults.strikes(delete) is not None for _ in range(4)] == [True, True, True, False]
    assert all(faults.strikes(read) for _ in range(4))


def test_the_begin_of_a_commit_is_seen(proxy: S3Proxy) -> None:
    """By it a kill is aimed."""
    for path in (
        "/b/table/.hoodie/20260131.deltacommit",
        "/b/table/x.commit.requested",
        "/b/table/.hoodie/1.clean.inflight",
    ):
        _ask(proxy, "PUT", path)
    assert proxy.faults.begun == set()
    _ask(proxy, "PUT", "/b/table/.hoodie/20260131.deltacommit.inflight")
    _ask(proxy, "PUT", "/b/table/.hoodie/timeline/20260131.commit.requested")
    assert {path.rpartition("/")[2] for path in proxy.faults.begun} == {
        "20260131.deltacommit.inflight", "20260131.commit.requested",
    }  # fmt: skip
