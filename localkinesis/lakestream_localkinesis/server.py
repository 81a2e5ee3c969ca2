"""The only module that owns sockets: asyncio protocols around the application."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import cast

import httptools
import uvloop
from h2.exceptions import ProtocolError

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.errors import StartupError
from lakestream_localkinesis.eventstream import EventStream
from lakestream_localkinesis.http import Request, Response
from lakestream_localkinesis.http1 import Http1, render_chunk, render_head
from lakestream_localkinesis.http2 import PREFACE, Http2

logger = logging.getLogger(__name__)

PUSH_SECONDS = 0.02
"""How often subscriptions are asked for what is due."""
SETTLE_SECONDS = 1.0
"""How often streams are brought up to date that nobody asks about."""
EVERYWHERE = "::"
"""All addresses of the machine, of IPv4 and IPv6."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 4567

    def url(self, *, tls: bool = False) -> str:
        """As clients take it."""
        return f"{'https' if tls else 'http'}://{self}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Dates:
    """The Date header at the application's time, made once a second."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._second = -1
        self._text = ""

    def now(self) -> str:
        """RFC 9110's IMF-fixdate."""
        second = self._application.clock.now_ms() // 1000
        if second != self._second:
            self._second = second
            self._text = formatdate(second, usegmt=True)
        return self._text


class OpenFiles:
    """Tells once that the process can open no more: connections that come then, the loop closes, and tells nobody."""

    def __init__(self) -> None:
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._told = self._most == resource.RLIM_INFINITY

    def took(self, descriptor: int) -> None:
        """Of a connection."""
        # The lowest number that is free is given: with the highest, all are taken.
        if descriptor >= self._most - 1 and not self._told:
            self._told = True
            logger.warning(
                "all %d files that a process may have open are open (ulimit -n): more connections are closed at once",
                self._most,
            )


class Connection(asyncio.Protocol):
    """One client: HTTP/2 if it begins with that preface, HTTP/1.1 otherwise."""

    def __init__(self, application: Application, dates: Dates, opened: set[Connection], files: OpenFiles) -> None:
        self._application = application
        self._dates = dates
        self._opened = opened
        self._files = files
        self._transport: asyncio.Transport
        self._first = b""
        self._http1: Http1 | None = None
        self._http2: Http2 | None = None
        # HTTP/1.1 answers go out in the order of the requests, also when one is held back.
        self._waiting: deque[Request] = deque()
        self._held = False
        # HTTP/1.1's one is number 0.
        self._subscriptions: dict[int, EventStream] = {}
        self._writable = True
        self._keep_alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        # uvloop's transports have asyncio.Transport's methods and are none.
        self._transport = cast(asyncio.Transport, transport)
        self._opened.add(self)
        self._files.took(transport.get_extra_info("socket").fileno())

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self._opened.discard(self)
        self._subscriptions.clear()

    def abort(self) -> None:
        """Close at once; what is not sent yet is lost."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        try:
            if self._http1:
                self._receive1(self._http1, data)
            elif self._http2:
                self._receive2(self._http2, data)
            else:
                self._begin(self._first + data)
        except (httptools.HttpParserError, ProtocolError) as error:
            logger.warning("connection closed: %s", error)
            self._transport.close()

    def pause_writing(self) -> None:
        """Called by asyncio: a client that does not read its answers gets no more of them."""
        self._writable = False
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncio."""
        self._writable = True
        self._transport.resume_reading()

    def _begin(self, data: bytes) -> None:
        if data.startswith(PREFACE):
            self._http2 = Http2()
            self._receive2(self._http2, data)
        elif PREFACE.startswith(data):
            self._first = data
        else:
            self._http1 = Http1()
            self._receive1(self._http1, data)

    def _receive1(self, http1: Http1, data: bytes) -> None:
        self._waiting.extend(http1.receive(data))
        interim = http1.interim()
        if interim:
            self._transport.write(interim)
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting and not self._held and not self._transport.is_closing():
            request = self._waiting.popleft()
            response = self._application.handle(request)
            if response.delay_ms:
                self._held = True
                self._later(response.delay_ms, self._release, request, response)
            else:
                self._answer1(request, response)

    def _release(self, request: Request, response: Response) -> None:
        self._held = False
        if not self._transport.is_closing():
            self._answer1(request, response)
            self._serve_waiting()

    def _answer1(self, request: Request, response: Response) -> None:
        if response.drop:
            self.abort()
            return
        head = render_head(response, self._dates.now(), keep_alive=request.keep_alive)
        # Not joined: a body may be megabytes.
        self._transport.writelines((head, response.sent_body()))
        self._keep_alive = request.keep_alive
        if response.events:
            self._held = True
            self._subscribe(0, response.events)
        elif not request.keep_alive:
            self._transport.close()

    def _receive2(self, http2: Http2, data: bytes) -> None:
        requests = http2.receive(data)
        self._transport.write(http2.data_to_send())
        for stream_id, request in requests:
            response = self._application.handle(request)
            if response.delay_ms:
                self._later(response.delay_ms, self._answer2, http2, stream_id, response)
            else:
                self._answer2(http2, stream_id, response)

    def _answer2(self, http2: Http2, stream_id: int, response: Response) -> None:
        if response.drop:
            self.abort()
        elif not self._transport.is_closing():
            http2.respond(stream_id, response, self._dates.now())
            if response.events:
                self._subscribe(stream_id, response.events)
            self._transport.write(http2.data_to_send())

    def _subscribe(self, stream_id: int, events: EventStream) -> None:
        self._subscriptions[stream_id] = events
        if len(self._subscriptions) == 1:
            self._later(0, self._push_due)

    def _push_due(self) -> None:
        """Push one event at most to each subscription: none of them keeps the others waiting."""
        now_ms = self._application.clock.now_ms()
        for stream_id, events in list(self._subscriptions.items()):
            if self._http2:
                self._push2(self._http2, stream_id, events, now_ms)
            elif self._writable:
                self._push1(events, now_ms)
        if self._subscriptions:
            self._later(PUSH_SECONDS * 1000, self._push_due)

    def _push1(self, events: EventStream, now_ms: int) -> None:
        data = self._application.push(events, now_ms)
        if data:
            self._transport.write(render_chunk(data))
        if events.ended:
            self._transport.write(render_chunk(b""))
            self._subscriptions.clear()
            self._held = False
            if not self._keep_alive:
                self._transport.close()
            self._serve_waiting()

    def _push2(self, http2: Http2, stream_id: int, events: EventStream, now_ms: int) -> None:
        if not http2.is_open(stream_id):
            del self._subscriptions[stream_id]
        elif self._writable and http2.is_clear(stream_id):
            data = self._application.push(events, now_ms)
            if data or events.ended:
                http2.push(stream_id, data, ends=events.ended)
                self._transport.write(http2.data_to_send())
            if events.ended:
                del self._subscriptions[stream_id]

    def _later(self, delay_ms: float, call: Callable[..., None], *arguments: object) -> None:
        asyncio.get_running_loop().call_later(delay_ms / 1000, call, *arguments)


class Server:
    """A listening server in the running event loop."""

    def __init__(self, application: Application, address: Address, tls: ssl.SSLContext | None = None) -> None:
        self._application = application
        self._address = address
        self._tls = tls
        self._opened: set[Connection] = set()
        self._files = OpenFiles()

    async def start(self) -> Address:
        """Listen, and say where."""
        loop = asyncio.get_running_loop()
        dates = Dates(self._application)
        host, port = self._address.host, self._address.port
        new = self._connection(dates)
        try:
            if host == EVERYWHERE:
                self._server = await loop.create_server(new, sock=_listen_everywhere(port), ssl=self._tls)
            else:
                self._server = await loop.create_server(new, host, port, ssl=self._tls)
        except (OSError, UnicodeError) as error:  # a name with an empty label is not even looked up
            raise StartupError(f"cannot listen on {self._address}: {error}") from error
        self._settling = loop.create_task(self._settle())
        bound = self._server.sockets[0].getsockname()
        return Address(bound[0], bound[1])

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        self._settling.cancel()
        await asyncio.gather(self._settling, return_exceptions=True)
        self._server.close()
        for connection in list(self._opened):
            connection.abort()
        while self._opened:
            await asyncio.sleep(0)

    def _connection(self, dates: Dates) -> Callable[[], Connection]:
        return lambda: Connection(self._application, dates, self._opened, self._files)

    async def _settle(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            self._application.settle()


def _listen_everywhere(port: int) -> socket.socket:
    """One socket for IPv4 and IPv6, which asyncio has for IPv6 alone; for IPv4 where a machine has no other."""
    if socket.has_dualstack_ipv6():
        return socket.create_server((EVERYWHERE, port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop that servers run on."""
    return uvloop.new_event_loop()
