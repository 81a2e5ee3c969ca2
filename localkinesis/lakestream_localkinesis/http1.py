"""HTTP/1.1 over httptools: bytes to requests, responses to bytes. No sockets."""

from __future__ import annotations

from http import HTTPStatus

import httptools

from lakestream_localkinesis.http import Request, Response

MOST_BODY_BYTES = 32 * 1024 * 1024
"""Twice the largest valid request: 10 MiB of data in base64, and 500 keys."""

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1:
    """One connection's requests."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._done: list[Request] = []
        self._interim: list[bytes] = []
        self._reset()

    def receive(self, data: bytes) -> list[Request]:
        """The requests that are complete with these bytes; httptools.HttpParserError if they are none."""
        self._parser.feed_data(data)
        done, self._done = self._done, []
        return done

    def interim(self) -> bytes:
        """What is to be sent before the answers: 100 Continue."""
        sent, self._interim = b"".join(self._interim), []
        return sent

    def on_url(self, url: bytes) -> None:
        """Called by the parser, perhaps in parts."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if self._headers.get("expect", "").lower() == "100-continue":
            self._interim.append(_CONTINUE)

    def on_body(self, part: bytes) -> None:
        """Called by the parser."""
        self._size += len(part)
        if self._size > MOST_BODY_BYTES:
            raise httptools.HttpParserError(f"body above {MOST_BODY_BYTES} bytes")
        self._body.append(part)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._done.append(
            Request(
                method=self._parser.get_method().decode("latin-1"),
                path=self._url.decode("latin-1").partition("?")[0],
                headers=self._headers,
                body=self._body[0] if len(self._body) == 1 else b"".join(self._body),
                keep_alive=self._parser.should_keep_alive(),
            )
        )
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0


def render_head(response: Response, date: str, *, keep_alive: bool) -> bytes:
    """What goes before a response's body."""
    head = [
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}",
        f"Date: {date}",
        f"Content-Type: {response.content_type}",
        "Transfer-Encoding: chunked" if response.events else f"Content-Length: {len(response.body)}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    if not keep_alive:
        head.append("Connection: close")
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n"


def render_chunk(data: bytes) -> bytes:
    """A part of a body whose length is not known; the last one is empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)
