"""HTTP/1.1: bytes to requests and responses to bytes."""

from __future__ import annotations

import http.client
import io

import httptools
import pytest

from lakestream_localkinesis import http1
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


def test_what_is_no_http_is_refused():
    with pytest.raises(httptools.HttpParserError):
        received(b"\x16\x03\x01\x02\x00")


def test_a_body_beyond_all_bounds_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http1, "MOST_BODY_BYTES", 4)
    with pytest.raises(httptools.HttpParserError):
        received(POST)


def test_a_response_is_read_by_the_standard_library():
    response = Response(400, "application/json", b"{}", {"x-amzn-RequestId": "id"})
    wire = http1.render_head(response, "Tue, 14 Nov 2023 22:13:20 GMT", keep_alive=False) + response.body

    class Socket:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(wire)

    parsed = http.client.HTTPResponse(Socket())  # type: ignore[arg-type]
    parsed.begin()
    assert (parsed.status, parsed.reason, parsed.read()) == (400, "Bad Request", b"{}")
    assert parsed.headers["x-amzn-RequestId"] == "id"
    assert parsed.headers["Date"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert parsed.headers["Connection"] == "close"
