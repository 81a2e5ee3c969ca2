"""A client of the API server for the few requests that the operator makes, on objects as plain JSON.

The package `kubernetes` makes them, and shows who the operator is. Its models are left out: they would be made of
thousands of answers, to be taken apart again, and know neither LakeStreams nor server-side apply with all it takes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import ConfigException

from lakestream_api.names import MANAGED_BY
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.clock import ServerClock
from lakestream_operator.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    NotServedError,
    RetryLaterError,
)
from lakestream_operator.model import Kind, Manifest, Reference

Object = dict[str, Any]

_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_ERRORS = {401: ForbiddenError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 422: InvalidError}
_LATER = (408, 429, 500, 502, 503, 504)
_TIMEOUT = aiohttp.ClientTimeout(sock_connect=5, sock_read=30)
"""Not of the whole: a request that waits for a free connection is not late."""
_PAGE = 500
"""Objects per answer to a list: an answer of thousands of progress reports would take the API server's memory."""


class Api(Protocol):
    """The requests that are made to act."""

    async def list_all(self, kind: Kind, namespace: str | None) -> list[Object]: ...

    async def get(self, reference: Reference) -> Object: ...

    async def apply(self, manifest: Manifest) -> Object: ...

    async def create(self, manifest: Manifest) -> Object: ...

    async def merge(self, reference: Reference, patch: Manifest, subresource: str = "") -> Object: ...

    async def delete(self, reference: Reference, uid: str) -> Object: ...


class KubeClient:
    """Requests to one API server, through connections of its own. Use as an async context manager. A clock is told
    what time it is there.

    Raises, in every method:
        RetryLaterError: no answer, or one that says to come back.
        ApiError: a refusal; see its subclasses.
    """

    def __init__(self, credentials: Credentials, clock: ServerClock | None = None) -> None:
        self._clock = clock or ServerClock()
        self._api = ApiClient(credentials)
        self._api.user_agent = MANAGED_BY

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._api.close()

    async def get(self, reference: Reference) -> Object:
        """Read an object."""
        return await self._request("GET", _path(reference.kind, reference.namespace, reference.name))

    async def list_all(self, kind: Kind, namespace: str | None) -> list[Object]:
        """All objects of a kind in a namespace (None: in all)."""
        return [one async for page in self._pages(kind, namespace, {}, _JSON) for one in page["items"]]

    async def list_versions(self, kind: Kind, namespace: str | None, selector: str) -> tuple[dict[Reference, int], int]:
        """The version of each object that a selector takes (empty: all), and that of the list."""
        found, as_of = {}, 0
        query = {"labelSelector": selector} if selector else {}
        async for page in self._pages(kind, namespace, query, _METADATA):
            # Which is null where there is none.
            for metadata in (one["metadata"] for one in page["items"] or ()):
                found[Reference(kind, metadata["namespace"], metadata["name"])] = int(metadata["resourceVersion"])
            as_of = int(page["metadata"]["resourceVersion"])
        return found, as_of

    async def _pages(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], accept: str
    ) -> AsyncIterator[Object]:
        following: Mapping[str, str] = {}
        while True:
            asked = {**query, **following, "limit": str(_PAGE)}
            page = await self._request("GET", _path(kind, namespace), asked, accept=accept)
            yield page
            if not page["metadata"].get("continue"):
                return
            following = {"continue": page["metadata"]["continue"]}

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
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        headers = {"Accept": accept, "Content-Type": content_type}
        asked_at = self._clock()
        try:
            request = await self._api.param_serialize(
                method, path, None, list((query or {}).items()), headers, body, auth_settings=["BearerToken"]
            )
            response = await self._api.call_api(*request, _request_timeout=_TIMEOUT)
            text = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ConfigException) as error:
            raise RetryLaterError(f"{method} {path}: {error!r}") from error
        if not 200 <= response.status < 300:
            raise _error(response.status, text, f"{method} {path}", response.headers.get("Retry-After", ""))
        if (answer := _parsed(text)) is None:
            raise RetryLaterError(
                f"{method} {path}: {response.status}, by somebody before the API server: {_shown(text)}"
            )
        with suppress(ValueError):  # where it says nothing of the time, or nonsense
            told = datetime.strptime(response.headers.get("Date", ""), _DATE).replace(tzinfo=UTC)
            self._clock.hear(told, asked_at)
        return answer


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{kind.value.prefix}{scope}/{kind.value.plural}" + (f"/{name}" if name else "")


def _parsed(text: bytes) -> Object | None:
    """The object that an answer is; None: it is of a proxy that speaks no Kubernetes."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _shown(text: bytes) -> str:
    return text[:500].decode(errors="replace")


def _error(status: int, text: bytes, request: str, retry_after: str) -> ApiError | RetryLaterError:
    answer = _parsed(text)
    message = f"{request}: {status} {_shown(text) if answer is None else answer.get('message', '')}"
    if status in _LATER:
        # Kubernetes gives seconds, never a date; the first digits of many are a long time as well.
        after = timedelta(seconds=int(retry_after[:9])) if retry_after.isdecimal() else None
        return RetryLaterError(message, after)
    if status == 404 and (answer is None or answer.get("kind") != "Status"):
        return NotServedError(f"{message} (by a proxy, or of a kind that is not defined)")
    return _ERRORS.get(status, ApiError)(status, message)
