"""An S3 server that counts requests by the kinds that S3 prices, and takes as long for each as S3 does."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs

from lakestream.storage import S3Settings

_BUCKET = "counted"


class RequestKind(StrEnum):
    """As S3 prices them."""

    PUT = "PUT"
    POST = "POST"
    LIST = "LIST"
    GET = "GET"
    HEAD = "HEAD"
    DELETE = "DELETE"


def kind_of(method: str, path: str, query: str) -> RequestKind | None:
    """The kind of a request in path style; None: a method that S3 has not.

    Args:
        method: of HTTP.
        path: `/bucket/key`.
        query: behind the `?`.
    """
    _, _, key = path.lstrip("/").partition("/")
    if method == "GET" and not key and not parse_qs(query, keep_blank_values=True).keys() & {"location", "versioning"}:
        return RequestKind.LIST
    return RequestKind.__members__.get(method)


@dataclass
class Counted:
    """A WSGI application that counts what it hands on."""

    application: Callable[..., Iterable[bytes]]
    seconds: float = 0.0
    """That each request takes longer."""
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        kind = kind_of(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", ""))
        if kind is not None:
            with self._lock:
                self._counts[kind.value] += 1
        if self.seconds:
            time.sleep(self.seconds)
        return self.application(environ, start_response)

    def take(self) -> Mapping[str, int]:
        """Counts since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(sorted(counts.items()))


@dataclass(frozen=True)
class CountingS3:
    """A running S3 server with a bucket."""

    settings: S3Settings
    counted: Counted
    lake: str = f"s3a://{_BUCKET}"
    """URL of the bucket."""

    def environment(self) -> dict[str, str]:
        """What another process needs to find it; the credentials are any."""
        return {"AWS_ENDPOINT_URL_S3": str(self.settings.endpoint)}


@contextmanager
def counting_s3(seconds: float = 0.0) -> Iterator[CountingS3]:
    """A server with an empty bucket on a free loopback port, until the block ends.

    Args:
        seconds: that each request takes longer than this server takes for it.
    """
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    # A line for each request otherwise.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    counted = Counted(DomainDispatcherApplication(create_backend_app), seconds)
    server = make_server("127.0.0.1", 0, counted, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="counting-s3", daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        client.create_bucket(Bucket=_BUCKET)
        yield CountingS3(S3Settings("us-east-1", endpoint), counted)
    finally:
        server.shutdown()
        thread.join()
