"""HTTP/1.1 over httptools: bytes to requests, responses to bytes. No sockets."""

from __future__ import annotations

from http import HTTPStatus

import httptools

from lakestream_localkinesis.http import Body, Request, Response

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
        while data:
            try:
                self._parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as offer:
                data = self._without_offer(self._done.pop()) + data[offer.args[0] :]
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
        offers = "upgrade" in self._headers
        if self._headers.get("expect", "").lower() == "100-continue" and not offers:
            self._interim.append(_CONTINUE)

    def on_body(self, part: bytes) -> None:
        """Called by the parser."""
        self._body.add(part)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._done.append(
            Request(
                method=self._parser.get_method().decode("latin-1"),
                path=self._url.decode("latin-1").partition("?")[0],
                headers=self._headers,
                body=self._body.whole(),
                keep_alive=self._parser.should_keep_alive(),
            )
        )
        self._reset()

    def _without_offer(self, request: Request) -> bytes:
        """The head once more, for the parser to stay with HTTP/1.1, as a server may (RFC 9110, 7.8).

        Java's HttpClient offers HTTP/2 so. The parser takes what follows for the other protocol, the body too.
        """
        if "upgrade" not in request.headers:
            raise httptools.HttpParserError(f"{request.method} is not served")
        kept = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items() if name != "upgrade")
        version = self._parser.get_http_version()
        return f"{request.method} {request.path} HTTP/{version}\r\n{kept}\r\n".encode("latin-1")

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = Body()


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
