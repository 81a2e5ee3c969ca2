"""One POST over HTTP/2, whose answer comes in parts for minutes: what Kinesis pushes, it pushes by that alone."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Mapping

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import H2Error
from h2.settings import SettingCodes

_RECEIVE = 1 << 16
_WINDOW = 512 * 1024
"""Bytes that may be under way. What of them lies behind the end of a range was pushed in vain, and is paid for."""


class PushedAnswer:
    """The answer to one request on a connection of its own."""

    def __init__(self, connection: socket.socket, scheme: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request and wait for the head of its answer.

        Args:
            connection: open, and closed with this.
            scheme: of the URL.
            headers: with the host.
            body: of the request.

        Raises:
            OSError: there was no answer. The request may have taken effect.
        """
        self._socket = connection
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._data: deque[bytes] = deque()
        self._is_ended = False
        self.status = 0
        try:
            self._send(scheme, headers, body)
            while not self.status:
                self._receive()
        except BaseException:
            self.close()
            raise

    def parts(self) -> Iterator[bytes]:
        """Its body, as it comes.

        Raises:
            OSError: it broke off, or nothing came for as long as the connection's timeout.
        """
        while True:
            while self._data:
                yield self._data.popleft()
            if self._is_ended:
                return
            self._receive()

    def close(self) -> None:
        """Take no more."""
        self._socket.close()

    def _send(self, scheme: str, headers: Mapping[str, str], body: bytes) -> None:
        self._h2.initiate_connection()
        # Each frame costs as much time as some hundred records.
        chosen: dict[SettingCodes | int, int] = {
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW,
            SettingCodes.MAX_FRAME_SIZE: _WINDOW,
            SettingCodes.ENABLE_PUSH: 0,
        }
        self._h2.update_settings(chosen)
        self._h2.increment_flow_control_window(_WINDOW)
        named = {name: value for name, value in headers.items() if name != "host"}
        pseudo = {":method": "POST", ":scheme": scheme, ":authority": headers["host"], ":path": "/"}
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, [*pseudo.items(), *named.items(), ("content-length", str(len(body)))])
        self._h2.send_data(stream, body, end_stream=True)
        self._socket.sendall(self._h2.data_to_send())

    def _receive(self) -> None:
        part = self._socket.recv(_RECEIVE)
        if not part:
            raise ConnectionResetError("the connection was closed before the answer was complete")
        try:
            for event in self._h2.receive_data(part):
                self._take(event)
        except H2Error as error:
            raise ConnectionError(f"not HTTP/2: {error}") from error
        self._socket.sendall(self._h2.data_to_send())

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                self.status = int(dict(event.headers)[b":status"])
            case DataReceived():
                # Only as fast as it is taken: this is called for the next part.
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self._data.append(event.data)
            case StreamEnded():
                self._is_ended = True
            case StreamReset() | ConnectionTerminated():
                raise ConnectionResetError(f"the server ended it, with error {event.error_code}")
