"""A Kinesis client that costs next to nothing: ready request bytes over a blocking socket.

The servers are what is measured; an SDK would need more of the cores than they do (see measurements of botocore).
Requests bear a signature that no local server verifies; kinesalite wants one to be there.
"""

from __future__ import annotations

import base64
import json
import random
import socket
from dataclasses import dataclass
from typing import Any

import httptools

_HEAD = (
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-Target: Kinesis_20131202.{operation}\r\n"
    "Content-Type: application/x-amz-json-1.1\r\nX-Amz-Date: 20260101T000000Z\r\n"
    "Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/kinesis/aws4_request, "
    "SignedHeaders=host, Signature=0\r\nContent-Length: {length}\r\n\r\n"
)
_RECEIVE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    body: bytes

    def fields(self) -> dict[str, Any]:
        """The body of a successful answer."""
        if self.status != 200:
            raise RuntimeError(f"{self.status}: {self.body[:300]!r}")
        fields: dict[str, Any] = json.loads(self.body or b"{}")
        return fields


def request(operation: str, fields: dict[str, object]) -> bytes:
    """A request's bytes."""
    body = json.dumps(fields).encode()
    return _HEAD.format(operation=operation, length=len(body)).encode() + body


def put_requests(stream: str, records: int, record_bytes: int, variants: int, seed: int) -> list[bytes]:
    """Requests of PutRecords with random data and keys."""
    source = random.Random(seed)

    def entry() -> dict[str, str]:
        data = base64.b64encode(source.randbytes(record_bytes)).decode()
        return {"Data": data, "PartitionKey": f"key-{source.randrange(10**9)}"}

    return [
        request("PutRecords", {"StreamName": stream, "Records": [entry() for _ in range(records)]})
        for _ in range(variants)
    ]


class RawClient:
    """One connection, opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def call(self, operation: str, **fields: object) -> dict[str, Any]:
        """A call whose answer matters."""
        return self.send(request(operation, fields)).fields()

    def send(self, data: bytes) -> Answer:
        """Send a request and read the answer. One lost with a connection that had been kept is sent again."""
        kept = self._socket is not None
        try:
            return self._exchange(data)
        except (ConnectionError, EOFError):
            self.close()
            if not kept:
                raise
        return self._exchange(data)

    def close(self) -> None:
        """Close the connection."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def _exchange(self, data: bytes) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(data)
        reader = _Reader()
        while not reader.complete:
            part = self._socket.recv(_RECEIVE_BYTES)
            if not part:
                raise EOFError("closed before the answer was complete")
            reader.parser.feed_data(part)
        if not reader.parser.should_keep_alive():
            self.close()
        return Answer(reader.parser.get_status_code(), b"".join(reader.body))


class _Reader:
    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body: list[bytes] = []
        self.complete = False

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        self.complete = True
