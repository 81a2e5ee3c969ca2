"""Connections against a host of which a test says, byte by byte, what it answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from lakestream.kinesis.connections import Connections

OK = b"HTTP/1.1 200 OK\r\nDate: Sat, 31 Jan 2026 12:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
HEADERS = {"host": "localhost", "x-amz-target": "Kinesis_20131202.ListShards"}


class Host:
    """Gives each connection the answers that are meant for it, one for each request, and closes it."""

    def __init__(self, conversations: Sequence[Sequence[Sequence[bytes]]]) -> None:
        self._conversations = conversations
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        self.requests: list[bytes] = []
        self.closed = threading.Semaphore(0)
        """Released once for each connection that was closed."""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        for answers in self._conversations:
            connection, _ = self._listening.accept()
            # Of a connection that the other side gives up.
            with connection, suppress(ConnectionError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for parts in answers:
                    self.requests.append(_request(connection))
                    for part in parts:
                        connection.sendall(part)
            self.closed.release()


def _request(connection: socket.socket) -> bytes:
    request = b""
    while not request.endswith(b"\r\n\r\nbody") and (byte := connection.recv(1)):
        request += byte
    return request


@contextmanager
def talking(
    *conversations: Sequence[Sequence[bytes]], most: int = 2, timeout: float = 60.0
) -> Iterator[tuple[Host, Connections]]:
    """A host with a conversation for each connection, and who talks to it."""
    host = Host(conversations)
    connections = Connections(host.url, most=most, timeout=timeout)
    try:
        yield host, connections
    finally:
        connections.close()
        host.close()


def post(connections: Connections) -> tuple[int, bytes]:
    response = connections.post(HEADERS, b"body")
    return response.status, response.body


def test_requests_follow_each_other_on_one_connection() -> None:
    with talking([[OK], [OK], [OK]]) as (host, connections):
        assert [post(connections) for _ in range(3)] == [(200, b"{}")] * 3
    assert host.requests[0] == (
        b"POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-target: Kinesis_20131202.ListShards\r\n"
        b"accept-encoding: identity\r\nuser-agent: lakestream\r\ncontent-length: 4\r\n\r\nbody"
    )


def test_headers_are_found_by_their_names_in_lower_case() -> None:
    with talking([[OK]]) as (_, connections):
        assert connections.post(HEADERS, b"body").headers[b"date"] == b"Sat, 31 Jan 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
    ],
)
def test_an_answer_is_the_same_in_whatever_parts_it_comes(answer: bytes) -> None:
    with talking([[answer], [answer[i : i + 1] for i in range(len(answer))], [OK]]) as (_, connections):
        assert post(connections) == post(connections) == (400, b"abcde")
        assert post(connections) == (200, b"{}")


def test_a_connection_that_the_host_has_closed_meanwhile_is_replaced() -> None:
    with talking([[OK]], [[OK]]) as (host, connections):
        assert post(connections) == (200, b"{}")
        assert host.closed.acquire(timeout=60)
        assert post(connections) == (200, b"{}")


def test_a_connection_that_the_host_wants_closed_is_not_used_again() -> None:
    bye = OK.replace(b"Content-Length", b"Connection: close\r\nContent-Length")
    with talking([[bye]], [[OK]]) as (_, connections):
        assert post(connections) == (200, b"{}")
        assert post(connections) == (200, b"{}")


@pytest.mark.parametrize("broken", [b"", OK[:20], OK[:-1], OK + OK, b"220 smtp.example.com ESMTP\r\n"])
def test_half_an_answer_is_none_and_ends_the_connection(broken: bytes) -> None:
    with talking([[broken]], [[OK]]) as (_, connections):
        with pytest.raises(OSError, match=r"closed before the answer was complete|not HTTP|reset"):
            post(connections)
        assert post(connections) == (200, b"{}")


def test_a_host_that_says_nothing_is_given_up() -> None:
    with talking([[b""], [b""]], timeout=0.05) as (_, connections), pytest.raises(TimeoutError):
        post(connections)


def test_connections_that_are_forgotten_are_closed() -> None:
    with talking([[OK], [OK]]) as (host, _):
        forgotten = Connections(host.url, most=1, timeout=60)
        assert post(forgotten) == (200, b"{}")
        del forgotten
        assert host.closed.acquire(timeout=60)


def test_no_more_are_open_than_allowed() -> None:
    with talking([[OK], [OK]], most=1) as (_, connections), ThreadPoolExecutor(2) as threads:
        assert list(threads.map(post, [connections] * 2)) == [(200, b"{}")] * 2
