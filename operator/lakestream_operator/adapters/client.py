"""A client of the API server for the few requests that the operator makes, on objects as plain JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp

from lakestream_api.names import MANAGED_BY
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.errors import (
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    RetryLaterError,
)
from lakestream_operator.model import Kind, Manifest, Reference

logger = logging.getLogger(__name__)

Object = dict[str, Any]

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_ERRORS = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
}
_LATER = (408, 429, 500, 502, 503, 504)
_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
_PAGE = 500
"""Objects per answer to a list: an answer of thousands of progress reports would take the API server's memory."""


class Api(Protocol):
    """The requests that are made to act."""

    async def list_all(self, kind: Kind, namespace: str | None, selector: str = "") -> tuple[list[Object], str]: ...

    async def get(self, reference: Reference) -> Object: ...

    async def apply(self, manifest: Manifest) -> Object: ...

    async def create(self, manifest: Manifest) -> Object: ...

    async def merge(self, reference: Reference, patch: Manifest, subresource: str = "") -> Object: ...

    async def delete(self, reference: Reference, uid: str) -> Object: ...


class KubeClient:
    """Requests to one API server. Use as an async context manager.

    Raises, in every method:
        RetryLaterError: no answer, or one that says to come back.
        ApiError: a refusal; see its subclasses.
    """

    def __init__(self, credentials: Credentials, requests_at_once: int = 32) -> None:
        self._credentials = credentials
        connector = aiohttp.TCPConnector(ssl=credentials.ssl_context(), limit=0)
        headers = {"User-Agent": MANAGED_BY, "Accept": "application/json"}
        self._session = aiohttp.ClientSession(connector=connector, headers=headers, timeout=_TIMEOUT)
        # Watches are not counted: they are always there.
        self._slots = asyncio.Semaphore(requests_at_once)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, reference: Reference) -> Object:
        """Read an object."""
        return await self._request("GET", _path(reference.kind, reference.namespace, reference.name))

    async def list_all(self, kind: Kind, namespace: str | None, selector: str = "") -> tuple[list[Object], str]:
        """All objects of a kind in a namespace (None: in all), and the version to watch them from."""
        found: list[Object] = []
        query = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            page = await self._request("GET", _path(kind, namespace), query)
            found += page["items"]
            following = page["metadata"].get("continue")
            if not following:
                return found, page["metadata"]["resourceVersion"]
            query["continue"] = following

    async def watch(
        self, kind: Kind, namespace: str | None, selector: str, version: str, seconds: int
    ) -> AsyncIterator[tuple[str, Object]]:
        """Changes since a version, as (type, object), bookmarks included, for so many seconds at most.

        Raises:
            ExpiredError: the version is too old.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        } | ({"labelSelector": selector} if selector else {})
        # The server ends a watch by itself; one that it forgot ends a little later.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=seconds + 10)
        try:
            async with await self._send("GET", _path(kind, namespace), query, timeout=timeout) as response:
                async for line in _lines(response):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _error(event["object"].get("code", 500), event["object"], "watch")
                    yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RetryLaterError(f"watching {kind.value.plural}: {error!r}") from error

    async def apply(self, manifest: Manifest) -> Object:
        """Server-side apply; takes over fields that others have set."""
        reference = Reference.of(manifest)
        path = _path(reference.kind, reference.namespace, reference.name)
        query = {"fieldManager": MANAGED_BY, "force": "true"}
        return await self._request("PATCH", path, query, manifest, _APPLY)

    async def create(self, manifest: Manifest) -> Object:
        """Create an object.

        Raises:
            ConflictError: there is one of that name.
        """
        reference = Reference.of(manifest)
        path = _path(reference.kind, reference.namespace)
        return await self._request("POST", path, {"fieldManager": MANAGED_BY}, manifest)

    async def replace(self, manifest: Manifest) -> Object:
        """Write an object that was read before.

        Raises:
            ConflictError: it has changed since.
        """
        reference = Reference.of(manifest)
        return await self._request("PUT", _path(reference.kind, reference.namespace, reference.name), {}, manifest)

    async def merge(self, reference: Reference, patch: Manifest, subresource: str = "") -> Object:
        """Change single fields of an object."""
        path = _path(reference.kind, reference.namespace, reference.name) + (f"/{subresource}" if subresource else "")
        return await self._request("PATCH", path, {"fieldManager": MANAGED_BY}, patch, _MERGE)

    async def delete(self, reference: Reference, uid: str) -> Object:
        """Delete the object of that uid, in order: its pods get SIGTERM and their time.

        Raises:
            ConflictError: another object has the name.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        return await self._request("DELETE", _path(reference.kind, reference.namespace, reference.name), {}, options)

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
    ) -> Object:
        try:
            async with self._slots, await self._send(method, path, query or {}, body, content_type) as response:
                answer: Object = await response.json()
                return answer
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RetryLaterError(f"{method} {path}: {error!r}") from error

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Manifest | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> aiohttp.ClientResponse:
        token = await self._credentials.current_token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = content_type
        response = await self._session.request(
            method,
            self._credentials.server + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers=headers,
            timeout=timeout or _TIMEOUT,
        )
        if response.ok:
            return response
        async with response:
            text = await response.text()
        raise _error(response.status, _parsed(text), f"{method} {path}", response.headers.get("Retry-After", ""))


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{kind.value.prefix}{scope}/{kind.value.plural}" + (f"/{name}" if name else "")


def _parsed(text: str) -> Object:
    try:
        answer: Object = json.loads(text)
    except ValueError:
        return {"message": text[:500]}
    return answer


def _error(status: int, answer: Object, request: str, retry_after: str = "") -> ApiError | RetryLaterError:
    message = f"{request}: {status} {answer.get('message', '')}"
    if status in _LATER:
        # Kubernetes gives seconds, never a date.
        return RetryLaterError(message, timedelta(seconds=int(retry_after)) if retry_after.isdecimal() else None)
    return _ERRORS.get(status, ApiError)(status, message)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length: aiohttp's own reader refuses long ones."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
