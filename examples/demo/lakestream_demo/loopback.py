"""HTTP to the demo's own servers on this machine."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError, URLError

from lakestream_demo.errors import DemoError

HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 3.0

# No proxy that the environment asks for may come between the demo and its own servers.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def without_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables by which no proxy is asked for this machine, nor for what `environ` excepts. Pure."""
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY")
    hosts = f"{excepted},{HOST}" if excepted else HOST
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def free_port() -> int:
    """A port that is free now; another process could take it before the server does, which then says so."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def get(url: str) -> str | None:
    """The body of a page; None while the server does not answer."""
    try:
        with _OPENER.open(url, timeout=_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read()
    # Of a server that ends within its answer, or of another program that has taken the port.
    except (URLError, OSError, HTTPException):
        return None
    return body.decode(errors="replace")


def create_bucket(endpoint: str, bucket: str) -> None:
    """Create a bucket on a local S3 server that looks at no signatures."""
    request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
    try:
        _OPENER.open(request, timeout=_TIMEOUT_SECONDS).close()
    except (HTTPException, HTTPError, URLError, OSError) as error:
        raise DemoError(f"the S3 server at {endpoint} did not create the bucket {bucket}: {error}") from error
