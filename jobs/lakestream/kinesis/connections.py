"""HTTP/1.1 connections to one host, kept open, at a fraction of what a general client costs.

A planner asks thousands of shards per batch, and most of its time went into the layers of urllib3. Here a request is
one send, and its answer goes through llhttp (httptools).
"""

from __future__ import annotations

import select
import socket
import ssl
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException, HTTPResponse
from threading import BoundedSemaphore
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httptools

from lakestream.kinesis.proxies import Proxy

if TYPE_CHECKING:
    from lakestream.kinesis.http2 import PushedAnswer

_RECEIVE = 1 << 16
_KNOWN = "accept-encoding: identity\r\nuser-agent: lakestream\r\n"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[bytes, bytes]
    """Names in lower case."""
    body: bytes


class Connections:
    """To one host, that of a URL; at most so many at once. Thread-safe."""

    def __init__(
        self, url: str, *, most: int, timeout: float, authorities: str | None = None, proxy: Proxy | None = None
    ) -> None:
        """`timeout`: seconds for connecting, and without a byte, after which a request counts as lost.

        `authorities`: a file of certificates (PEM) that are trusted instead of the system's.
        """
        parts = urlsplit(url)
        is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if is_secure else 80)
        self._timeout = timeout
        self._slots = BoundedSemaphore(most)
        self._idle: list[_Connection] = []
        # A client may be dropped without a word, as in a task that fails.
        weakref.finalize(self, _close_all, self._idle)
        self._authorities = authorities
        self._tls = ssl.create_default_context(cafile=authorities) if is_secure else None
        self._proxy = proxy
        self._target, forwarded = "/", ""
        if proxy is not None and not is_secure:
            # Who forwards is told to whom, and knows us by each request.
            self._target = f"http://{parts.netloc}/"
            forwarded = "".join(f"{name}: {value}\r\n" for name, value in proxy.headers.items())
        self._known = _KNOWN + forwarded

    def post(self, headers: Mapping[str, str], body: bytes) -> Response:
        """POST to `/`. `headers` have the host, and neither the length nor what this module sends by itself.

        Raises:
            OSError: there was no answer, or not a whole one. The request may have taken effect.
        """
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {self._target} HTTP/1.1\r\n{lines}{self._known}content-length: {len(body)}\r\n\r\n"
        with self._slots:
            connection = self._take()
            try:
                response = connection.exchange(head.encode("latin-1") + body)
            except BaseException:
                connection.close()
                raise
            if connection.is_open:
                self._idle.append(connection)
            return response

    def close(self) -> None:
        """Close those that nobody uses."""
        _close_all(self._idle)

    def _take(self) -> _Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._open()
            if not connection.is_dropped():
                return connection
            connection.close()

    def pushed(self, headers: Mapping[str, str], body: bytes) -> PushedAnswer:
        """POST to `/` by HTTP/2, on a connection of its own. Arguments and errors are those of `post`."""
        from lakestream.kinesis.http2 import PushedAnswer  # to import h2 takes 20 ms, of each start

        scheme, tls = ("http", None) if self._tls is None else ("https", self._tls_of_http2)
        return PushedAnswer(self._opened(tls, through=True), scheme, headers, body)

    @cached_property
    def _tls_of_http2(self) -> ssl.SSLContext:
        tls = ssl.create_default_context(cafile=self._authorities)
        tls.set_alpn_protocols(["h2"])
        return tls

    def _open(self) -> _Connection:
        return _Connection(self._opened(self._tls, through=self._tls is not None))

    def _opened(self, tls: ssl.SSLContext | None, *, through: bool) -> socket.socket:
        plain = self._reached(through=through)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return tls.wrap_socket(plain, server_hostname=self._host) if tls else plain
        except BaseException:
            plain.close()
            raise

    def _reached(self, *, through: bool) -> socket.socket:
        """What leads to the host, and is not encrypted yet: if need be to a proxy that forwards, or through it."""
        if self._proxy is None:
            return socket.create_connection((self._host, self._port), self._timeout)
        try:
            plain = socket.create_connection((self._proxy.host, self._proxy.port), self._timeout)
            if through:
                _tunnel(plain, self._host, self._port, self._proxy)
        except (HTTPException, OSError) as error:
            told = " ".join(str(error).split())
            raise ConnectionError(f"by the proxy {self._proxy.host}:{self._proxy.port}: {told:.200}") from error
        return plain


def _tunnel(plain: socket.socket, host: str, port: int, proxy: Proxy) -> None:
    """Have a proxy lead on to a host. By HTTP/1.1, where `http.client` of Python 3.11 says 1.0, which Envoy refuses."""
    there = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"host": there, **proxy.headers}.items())
    try:
        plain.sendall(f"CONNECT {there} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
        answer = HTTPResponse(plain, method="CONNECT")
        answer.begin()
        # Of its reader alone; there is nothing behind the head before we say something.
        answer.close()
        if answer.status // 100 != 2:
            raise ConnectionError(f"{answer.status} {answer.reason}")
    except BaseException:
        plain.close()
        raise


def _close_all(connections: list[_Connection]) -> None:
    while connections:
        connections.pop().close()


class _Connection:
    """One, with one request at a time."""

    def __init__(self, open_socket: socket.socket) -> None:
        self._socket = open_socket
        self._poll = select.poll()
        self._poll.register(open_socket, select.POLLIN)
        self.is_open = True

    def exchange(self, request: bytes) -> Response:
        self._socket.sendall(request)
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        try:
            while not answer.is_complete:
                part = self._socket.recv(_RECEIVE)
                if not part:
                    raise ConnectionResetError("the connection was closed before the answer was complete")
                parser.feed_data(part)
        except httptools.HttpParserError as error:
            raise ConnectionError(f"not HTTP: {error}") from error
        # The parser's own word on this is about a message that has not ended yet.
        if answer.headers.get(b"connection", b"").lower() == b"close" or parser.get_http_version() == "1.0":
            self.close()
        return Response(parser.get_status_code(), answer.headers, b"".join(answer.body))

    def is_dropped(self) -> bool:
        """Whether the host has closed it meanwhile: between two requests there is nothing else to read."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        self.is_open = False
        self._socket.close()


class _Answer:
    """What the parser calls."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body: list[bytes] = []
        self.is_complete = False

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ConnectionError("more than one answer to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        self.is_complete = True
