"""HTTP/1.1: bytes to requests and responses to bytes."""

from __future__ import annotations

import io
from http.client import HTTPResponse

import httptools
import pytest

from lakestream_localkinesis import http, http1
from lakestream_localkinesis.http import Request, Response

POST = b"POST /path?query=1 HTTP/1.1\r\nHost: x\r\nX-Amz-Target: T\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"


def received(*parts: bytes) -> list[Request]:
    connection = http1.Http1()
    return [request for part in parts for request in connection.receive(part)]


@pytest.mark.parametrize("wire", [POST, CHUNKED])
def test_a_request_is_the_same_however_it_is_cut(wire: bytes):
    whole = received(wire)

    assert len(whole) == 1
    assert whole[0].method == "POST"
    assert whole[0].body == b"hello"
    assert received(*(wire[i : i + 1] for i in range(len(wire)))) == whole
    assert received(wire + wire) == whole * 2


def test_path_and_headers():
    [request] = received(POST)

    assert request.path == "/path"
    assert request.headers["x-amz-target"] == "T"
    assert request.keep_alive


def test_the_client_may_close():
    assert not received(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")[0].keep_alive
    assert not received(b"GET / HTTP/1.0\r\n\r\n")[0].keep_alive


def test_a_client_that_waits_for_leave_is_given_it():
    connection = http1.Http1()
    head, body = POST.replace(b"Host: x", b"Expect: 100-continue").split(b"\r\n\r\n")

    assert connection.receive(head + b"\r\n\r\n") == []
    assert connection.interim() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert connection.interim() == b""
    assert connection.receive(body)[0].body == b"hello"


@pytest.mark.parametrize("wire", [POST, CHUNKED, b"GET /healthz HTTP/1.1\r\n\r\n"])
def test_who_offers_another_protocol_is_answered_in_this_one(wire: bytes):
    # As Java's HttpClient and `curl --http2` do.
    offer = b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    offered = wire.replace(b"\r\n", offer, 1)
    [plain] = received(wire)

    for parts in ([offered * 2 + wire], [byte.to_bytes() for byte in offered * 2 + wire]):
        requests = received(*parts)
        assert [(one.method, one.path, one.body, one.keep_alive) for one in requests] == [
            (plain.method, plain.path, plain.body, True)
        ] * 3


def test_one_leave_is_given_to_who_offers_another_protocol():
    connection = http1.Http1()
    offer = POST.replace(b"Host: x", b"Expect: 100-continue\r\nConnection: Upgrade\r\nUpgrade: h2c")

    assert connection.receive(offer)[0].body == b"hello"
    assert connection.interim() == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_tunnel_is_refused():
    with pytest.raises(httptools.HttpParserError, match="CONNECT is not served"):
        received(b"CONNECT kinesis:443 HTTP/1.1\r\nHost: kinesis:443\r\n\r\n")


def test_what_is_no_http_is_refused():
    with pytest.raises(httptools.HttpParserError):
        received(b"\x16\x03\x01\x02\x00")


def test_a_body_beyond_all_bounds_is_taken_to_its_end_and_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "MOST_BODY_BYTES", 4)

    assert [request.body for request in received(POST + CHUNKED + POST.replace(b"5\r\n\r\nh", b"4\r\n\r\n"))] == [
        None,
        None,
        b"ello",
    ]


def test_a_response_is_read_by_the_standard_library():
    response = Response(400, "application/json", b"{}", {"x-amzn-RequestId": "id"})
    wire = http1.render_head(response, "Tue, 14 Nov 2023 22:13:20 GMT", keep_alive=False) + response.body

    class Socket:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(wire)

    parsed = HTTPResponse(Socket())  # type: ignore[arg-type]
    parsed.begin()
    assert (parsed.status, parsed.reason, parsed.read()) == (400, "Bad Request", b"{}")
    assert parsed.headers["x-amzn-RequestId"] == "id"
    assert parsed.headers["Date"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert parsed.headers["Connection"] == "close"
