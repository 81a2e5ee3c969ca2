"""A server that answers every PutRecords at once, for measuring and testing producers: no Kinesis.

``python -m lakestream_loadgen.testing.answering`` prints its port, and serves on loopback until its standard
input is closed. Faults come by share of the requests, drawn from a seed: ``--lost`` closes the connection
after the records were taken, ``--failing`` answers 500 before, ``--throttled`` refuses every second record.
What was taken is written to ``--taken``, a JSON line per record: sequence number, partition key, data.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO

import orjson

SHARD = "shardId-000000000000"
_FIRST_SEQUENCE = 49590338271490256608559692538361571095921575989136588898


@dataclass(frozen=True)
class Faults:
    """Shares of the requests."""

    lost: float = 0.0
    failing: float = 0.0
    throttled: float = 0.0
    seed: int = 1


class AnsweringServer:
    """Takes records and remembers them in a file, if one is given."""

    def __init__(self, faults: Faults, taken: IO[bytes] | None) -> None:
        self._faults = faults
        self._taken = taken
        self._random = Random(faults.seed)
        self._sequence = _FIRST_SEQUENCE

    def answer(self, body: bytes) -> bytes | None:
        """The HTTP answer to a request; None to close the connection instead."""
        fault = self._random.random()
        if fault < self._faults.failing:
            return _http(500, b'{"__type":"InternalFailure"}')
        fault -= self._faults.failing
        if self._taken is None and fault >= self._faults.throttled:
            # Measuring: neither parse nor number anything.
            return _same_answer(body.count(b'"PartitionKey"'))
        throttled = fault < self._faults.throttled
        answer = self._take(orjson.loads(body)["Records"], throttled=throttled)
        lost = not throttled and fault - self._faults.throttled < self._faults.lost
        return None if lost else _http(200, answer)

    def _take(self, records: list[dict[str, str]], *, throttled: bool) -> bytes:
        results: list[dict[str, str]] = []
        for number, record in enumerate(records):
            if throttled and number % 2 == 0:
                code = "ProvisionedThroughputExceededException"
                results.append({"ErrorCode": code, "ErrorMessage": "Rate exceeded for shard"})
                continue
            self._sequence += 16
            results.append({"ShardId": SHARD, "SequenceNumber": str(self._sequence)})
            if self._taken is not None:
                line = {"sequence": str(self._sequence), "key": record["PartitionKey"], "data": record["Data"]}
                self._taken.write(orjson.dumps(line) + b"\n")
        failed = sum("ErrorCode" in result for result in results)
        return orjson.dumps({"FailedRecordCount": failed, "Records": results})


class _Connection(asyncio.Protocol):
    def __init__(self, server: AnsweringServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._end = -1
        self._body = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._request_is_whole():
            body = bytes(memoryview(self._buffer)[self._body : self._end])
            del self._buffer[: self._end]
            self._end = -1
            answer = self._server.answer(body)
            assert isinstance(self._transport, asyncio.Transport)
            if answer is None:
                self._transport.abort()
                return
            self._transport.write(answer)

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


def _http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


@functools.cache
def _same_answer(records: int) -> bytes:
    entry = {"SequenceNumber": str(_FIRST_SEQUENCE), "ShardId": SHARD}
    return _http(200, orjson.dumps({"FailedRecordCount": 0, "Records": [entry] * records}))


async def _serve(server: AnsweringServer) -> None:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: _Connection(server), "127.0.0.1", 0)
    sys.stdout.write(f"{listener.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    listener.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("lost", "failing", "throttled"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--taken", type=Path)
    options = parser.parse_args()
    faults = Faults(options.lost, options.failing, options.throttled, options.seed)
    with options.taken.open("wb") if options.taken else open("/dev/null", "wb") as taken:
        asyncio.run(_serve(AnsweringServer(faults, taken if options.taken else None)))


if __name__ == "__main__":
    main()
