"""A server that answers every PutRecords at once, for measuring producers: no Kinesis.

``python -m lakestream_loadgen.testing.answering`` prints its port, and serves on loopback until its standard
input is closed. It counts the records of a request, and says that they are all written.
"""

from __future__ import annotations

import asyncio
import functools
import sys

import orjson

_ENTRY = {
    "SequenceNumber": "49590338271490256608559692538361571095921575989136588898",
    "ShardId": "shardId-000000000000",
}


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body = 0
        self._end = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._request_is_whole():
            records = self._buffer.count(b'"PartitionKey"', self._body, self._end)
            del self._buffer[: self._end]
            self._end = -1
            self._transport.write(_answer(records))

    def _request_is_whole(self) -> bool:
        if self._end < 0:
            head_end = self._buffer.find(b"\r\n\r\n")
            if head_end < 0:
                return False
            head = bytes(self._buffer[:head_end]).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            self._body = head_end + 4
            self._end = self._body + length
        return len(self._buffer) >= self._end


@functools.cache
def _answer(records: int) -> bytes:
    body = orjson.dumps({"FailedRecordCount": 0, "Records": [_ENTRY] * records})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(_Connection, "127.0.0.1", 0)
    sys.stdout.write(f"{listener.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    listener.close()


if __name__ == "__main__":
    asyncio.run(_serve())
