"""The S3 server of the tests: requests that write exclude each other, as S3's conditional writes do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto_s3 import OneWriteAtATime, moto_s3, s3_client

SECONDS = 60


class Gate:
    """An application that holds each request until it is let through."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.came = threading.Semaphore(0)
        self.let_through = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        self.entered.append(environ["REQUEST_METHOD"])
        self.came.release()
        assert self.let_through.acquire(timeout=SECONDS)
        yield environ["wsgi.input"].read()


def _started(*_: Any) -> Any:
    return None


@contextmanager
def requests(application: OneWriteAtATime, gate: Gate) -> Iterator[Any]:
    with ThreadPoolExecutor(4) as pool:

        def ask(method: str, body: Any = b"", length: int = 0) -> Any:
            environ = {"REQUEST_METHOD": method, "CONTENT_LENGTH": str(length), "wsgi.input": BytesIO(body)}
            return pool.submit(lambda: b"".join(application(environ, _started)))

        yield ask
        gate.let_through.release(9)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_write_waits_for_the_write_before_it_and_reads_do_not(method: str) -> None:
    gate = Gate()
    with requests(OneWriteAtATime(gate), gate) as ask:
        first = ask("PUT", b"first", 5)
        assert gate.came.acquire(timeout=SECONDS)
        second = ask(method, b"second", 6)
        ask("GET")
        ask("HEAD")
        assert gate.came.acquire(timeout=SECONDS)
        assert gate.came.acquire(timeout=SECONDS)
        assert sorted(gate.entered) == ["GET", "HEAD", "PUT"]
        gate.let_through.release(4)
        assert (first.result(SECONDS), second.result(SECONDS)) == (b"first", b"second")


def test_objects_are_written_once() -> None:
    with moto_s3("once") as url:
        client = s3_client(url)
        client.put_object(Bucket="once", Key="a", Body=b"1", IfNoneMatch="*")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            client.put_object(Bucket="once", Key="a", Body=b"2", IfNoneMatch="*")
        assert client.get_object(Bucket="once", Key="a")["Body"].read() == b"1"
