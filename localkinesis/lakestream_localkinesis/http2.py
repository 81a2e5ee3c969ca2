"""HTTP/2 with prior knowledge (h2c) over the h2 library: bytes to requests, responses to bytes. No sockets.

The SDKs for JavaScript v3 and Java v2 (asynchronous) speak HTTP/2 to Kinesis by default.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import StreamClosedError
from h2.settings import SettingCodes

from lakestream_localkinesis.http import Body, Request, Response

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW = 16 * 1024 * 1024
"""Room for a whole PutRecords: a client need not wait for credit in the middle of one."""


@dataclass(slots=True)
class _Incoming:
    headers: dict[str, str]
    body: Body = field(default_factory=Body)


@dataclass(slots=True)
class _Outgoing:
    rest: memoryview
    ends: bool
    """No more is pushed behind it."""


class _Frames:
    """Keeps a client's farewell from h2.

    A GOAWAY without error says that no more requests come; those under way are still to be answered (RFC 9113, 6.8).
    The JavaScript SDK sends one right behind each request. To h2 it ends the connection at once.
    """

    _HEAD_BYTES = 9
    _GOAWAY = 7
    _ERROR_CODE = slice(_HEAD_BYTES + 4, _HEAD_BYTES + 8)

    def __init__(self) -> None:
        self._preface = len(PREFACE)
        self._rest = b""

    def without_farewell(self, data: bytes) -> bytes:
        """The frames that are complete with these bytes, but for that one."""
        data = self._rest + data
        start = min(self._preface, len(data))
        self._preface -= start
        passed = [data[:start]]
        while len(data) - start >= self._HEAD_BYTES:
            end = start + self._HEAD_BYTES + int.from_bytes(data[start : start + 3])
            if end > len(data):
                break
            frame = data[start:end]
            if frame[3] != self._GOAWAY or any(frame[self._ERROR_CODE]):
                passed.append(frame)
            start = end
        self._rest = data[start:]
        return b"".join(passed)


class Http2:
    """One connection's requests, by stream."""

    def __init__(self) -> None:
        self._connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._connection.initiate_connection()
        self._connection.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW})
        self._connection.increment_flow_control_window(_WINDOW)
        self._frames = _Frames()
        self._incoming: dict[int, _Incoming] = {}
        self._outgoing: dict[int, _Outgoing] = {}

    def receive(self, data: bytes) -> list[tuple[int, Request]]:
        """The requests that are complete with these bytes; h2.exceptions.ProtocolError if they are none."""
        done = []
        for event in self._connection.receive_data(self._frames.without_farewell(data)):
            request = self._on_event(event)
            if request:
                done.append(request)
        return done

    def respond(self, stream_id: int, response: Response, date: str) -> None:
        """Send a response, as far as the client's credit goes now."""
        headers = [
            (":status", str(response.status)),
            ("date", date),
            ("content-type", response.content_type),
            *(() if response.events else [("content-length", str(len(response.body)))]),
            *((name.lower(), value) for name, value in response.headers.items()),
        ]
        try:
            self._connection.send_headers(stream_id, headers)
        except StreamClosedError:
            # The client gave this request up; others on the connection go on.
            return
        self._outgoing[stream_id] = _Outgoing(memoryview(response.sent_body()), ends=response.events is None)
        self._send(stream_id)

    def is_open(self, stream_id: int) -> bool:
        """Whether the client still waits for something in this stream."""
        return stream_id in self._outgoing

    def is_clear(self, stream_id: int) -> bool:
        """Whether all that was pushed has gone out: the client gives credit for more."""
        return not self._outgoing[stream_id].rest

    def push(self, stream_id: int, data: bytes, *, ends: bool) -> None:
        """Go on with the body of a stream that is open and clear."""
        self._outgoing[stream_id] = _Outgoing(memoryview(data), ends)
        self._send(stream_id)

    def data_to_send(self) -> bytes:
        """What is to go out now."""
        return self._connection.data_to_send()

    def _on_event(self, event: Event) -> tuple[int, Request] | None:
        match event:
            case RequestReceived(stream_id=int(stream_id)):
                self._incoming[stream_id] = _Incoming({str(name): str(value) for name, value in event.headers})
            case DataReceived(stream_id=int(stream_id)):
                self._incoming[stream_id].body.add(event.data)
                self._connection.acknowledge_received_data(event.flow_controlled_length, stream_id)
            case StreamEnded(stream_id=int(stream_id)):
                return stream_id, _request(self._incoming.pop(stream_id))
            case StreamReset(stream_id=int(stream_id)):
                self._incoming.pop(stream_id, None)
                self._outgoing.pop(stream_id, None)
            case WindowUpdated() | RemoteSettingsChanged():
                for stream_id in list(self._outgoing):
                    self._send(stream_id)
            case _:
                pass
        return None

    def _send(self, stream_id: int) -> None:
        try:
            self._send_within_credit(stream_id)
        except StreamClosedError:
            # Given up by a frame that came together with the one we are at: h2 has gone through all of them already.
            del self._outgoing[stream_id]

    def _send_within_credit(self, stream_id: int) -> None:
        outgoing = self._outgoing[stream_id]
        connection = self._connection
        while outgoing.rest:
            room = min(connection.local_flow_control_window(stream_id), connection.max_outbound_frame_size)
            if room <= 0:
                return
            connection.send_data(stream_id, outgoing.rest[:room])
            outgoing.rest = outgoing.rest[room:]
        if outgoing.ends:
            connection.end_stream(stream_id)
            del self._outgoing[stream_id]


def _request(incoming: _Incoming) -> Request:
    headers = incoming.headers
    return Request(
        method=headers.get(":method", ""),
        path=headers.get(":path", "/").partition("?")[0],
        headers=headers,
        body=incoming.body.whole(),
    )
