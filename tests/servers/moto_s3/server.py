"""moto's S3 over a real socket, with writes that exclude each other as S3's do.

Between the look whether an object exists and its creation, moto lets other threads in, so that of several `PUT`s with
`If-None-Match: *` more than one may win. S3 lets exactly one win: here the requests that write go one after the other.

`python server.py` serves in a process of its own, and prints the URL.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from werkzeug.serving import BaseWSGIServer, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from mypy_boto3_s3 import S3Client


class OneWriteAtATime:
    """A WSGI application whose requests that write exclude each other."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._writing = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return self._application(environ, start_response)
        # Before the lock: a client that stops in the middle of a body must not hold up the others.
        if length := environ.get("CONTENT_LENGTH"):
            environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(length)))
        with self._writing:
            return list(self._application(environ, start_response))


def s3_server() -> BaseWSGIServer:
    """A server on a free port of the loopback, which `serve_forever` runs; all of a process have the same buckets."""
    # Takes longer to import than most tests to run, and each process that runs tests imports all of them.
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

    application = OneWriteAtATime(DomainDispatcherApplication(create_backend_app))
    return make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)


def url_of(server: BaseWSGIServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def s3_client(url: str) -> S3Client:
    """A client that needs nothing of the environment."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(s3={"addressing_style": "path"}),
    )


@contextmanager
def moto_s3(bucket: str) -> Iterator[str]:
    """URL of a running server that has the bucket."""
    server = s3_server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        s3_client(url_of(server)).create_bucket(Bucket=bucket)
        yield url_of(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    own = s3_server()
    sys.stdout.write(f"{url_of(own)}\n")
    sys.stdout.flush()
    own.serve_forever()
