"""A proxy before an S3 server, which acts faults out. One thread for each connection."""

from __future__ import annotations

import http.client
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from chaos.s3.faults import Effect, S3Fault, S3Faults, S3Request

_UPSTREAM_SECONDS = 120.0
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection"})


@dataclass(frozen=True, eq=False)
class _Whole:
    """A request with its body: it can be sent when its client is long gone."""

    request: S3Request
    body: bytes


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


class S3Proxy:
    """A running proxy; `url` is what clients are told."""

    def __init__(self, upstream: str, faults: S3Faults) -> None:
        self.faults = faults
        self._upstream = urlsplit(upstream).netloc
        self._held: list[_Whole] = []
        self._lock = threading.Lock()
        self._refusals = 0
        self._ended = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="s3-proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def held(self) -> list[str]:
        """The requests that wait to be released."""
        with self._lock:
            return [f"{whole.request.method} {whole.request.path}" for whole in self._held]

    def release(self) -> list[str]:
        """Let what is held take effect, in its order; returns the requests, and how the server answered."""
        return [told for whole in list(self._held) for told in self._land(whole)]

    def answer(self, whole: _Whole) -> _Answer | None:
        """What the client gets; None: the connection closes without a word."""
        fault = self.faults.strikes(whole.request)
        match fault:
            case None:
                return self.forward(whole)
            case S3Fault(Effect.REFUSE):
                return self._refusal()
            case S3Fault(Effect.FORBID):
                return _error(403, "AccessDenied")
            case S3Fault(Effect.CUT):
                return None
            case S3Fault(Effect.LOSE_ANSWER):
                self.forward(whole)
                return None
            case S3Fault(Effect.DELAY):
                answer = self.forward(whole)
                self._ended.wait(fault.seconds)
                return answer
            case S3Fault(Effect.LATE):
                with self._lock:
                    self._held.append(whole)
                timer = threading.Timer(fault.seconds, self._land, (whole,))
                timer.daemon = True
                timer.start()
                return None
            case _:
                with self._lock:
                    self._held.append(whole)
                # Its client waits, and finds out by its own timeout, or dies.
                self._ended.wait(_UPSTREAM_SECONDS)
                return None

    def forward(self, whole: _Whole) -> _Answer:
        """Send a request to the server."""
        request = whole.request
        target = request.path + (f"?{request.query}" if request.query else "")
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        connection = http.client.HTTPConnection(self._upstream, timeout=_UPSTREAM_SECONDS)
        try:
            # As it came: not even `Accept-Encoding` is added.
            connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(whole.body or None)
            response = connection.getresponse()
            return _Answer(response.status, response.reason, response.getheaders(), response.read())
        except (OSError, http.client.HTTPException):
            return _Answer(502, "Bad Gateway", [], b"")
        finally:
            connection.close()

    def _land(self, whole: _Whole) -> list[str]:
        """A held request takes effect, once."""
        with self._lock:
            if whole not in self._held:
                return []
            self._held.remove(whole)
        return [f"{whole.request.method} {whole.request.path}: {self.forward(whole).status}"]

    def _refusal(self) -> _Answer:
        with self._lock:
            self._refusals += 1
            is_busy = self._refusals % 2
        return _error(503, "SlowDown") if is_busy else _error(500, "InternalError")


def _error(status: int, code: str) -> _Answer:
    body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>A fault.</Message></Error>"
    return _Answer(status, code, [("Content-Type", "application/xml")], body.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: S3Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients are killed while they are answered."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = -1
    disable_nagle_algorithm = True

    def _any(self) -> None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        answer = self.server.proxy.answer(_Whole(S3Request(self.command, path, query, headers), body))
        if answer is None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(2)
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers:
            if name.lower() not in _HOP_BY_HOP and (name.lower() != "content-length" or self.command == "HEAD"):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _any  # noqa: N815 - the standard library's names

    def handle_expect_100(self) -> bool:
        # What is written waits in a buffer, and S3A, which asks before each body, for three seconds.
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def log_message(self, *args: object) -> None:
        """The proxy counts; it does not talk."""
