"""What kopf does: it watches LakeStreams and all that is made for them.

One handler for each kind, of the sort that keeps nothing in the object: the reconciler makes all decisions from what
is, so that an event which is lost, late or told twice does no harm. Finalizers and progress of kopf's own are not used;
it would let an object go whose deletion began while no operator ran.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Iterator
from typing import Any, cast

import kopf

from lakestream_operator.adapters.cache import WATCHED, version_of
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.model import Kind, Reference
from lakestream_operator.reconciler import Reconciler

_WATCH_SECONDS, _PATIENCE = 60, 10
"""A watch is ended and begun anew so often, by the API server or else a little later by us: a connection that died
without a word is noticed."""
_RETRY_SECONDS = (2.0, 4.0, 8.0, 15.0)
"""Between requests for a watch that an API server refuses or cannot answer, the last one again and again: without its
watches an operator is of no use, and one that ended would come back to the same."""
_PAGE = 100
"""Objects per answer to a list: all of them are taken in before the next one is asked for."""


class _Backoffs:
    """Seconds between the attempts at a request, for each anew."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain(_RETRY_SECONDS, itertools.repeat(_RETRY_SECONDS[-1]))


class _NoDifferences(kopf.DiffBaseStorage):
    """kopf copies each object, to tell later how it changed. Nobody asks it to."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:
        return cast(kopf.BodyEssence, {})

    def fetch(self, *, body: kopf.Body) -> None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        raise AssertionError("nothing of kopf's is kept in objects")


def registry_of(reconciler: Reconciler, credentials: Credentials) -> kopf.OperatorRegistry:
    """The handlers."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        header = await credentials.get_api_key_with_prefix("BearerToken")
        scheme, token = header.split(" ", 1) if header else (None, None)
        return kopf.ConnectionInfo(
            server=credentials.host,
            ca_path=credentials.ssl_ca_cert,
            insecure=not credentials.verify_ssl,
            certificate_path=credentials.cert_file,
            private_key_path=credentials.key_file,
            proxy_url=credentials.proxy,
            scheme=scheme,
            token=token,
        )

    def handle(kind: Kind) -> None:
        @kopf.on.event(*_resource(kind), registry=registry)
        async def noticed(type: str | None, body: kopf.Body, namespace: str | None, name: str, **_: Any) -> None:
            if type == "DELETED":
                reconciler.cache.remove(Reference(kind, str(namespace), name), version_of(body))
                return
            reconciler.cache.put(kind, dict(body))
            if type is None:
                reconciler.relisted.set()

    for kind in WATCHED:
        handle(kind)
    return registry


def _resource(kind: Kind) -> tuple[str, str, str]:
    """Group, version and plural."""
    group, _, version = kind.api_version.rpartition("/")
    return group, version, kind.value.plural


async def watch(
    reconciler: Reconciler, credentials: Credentials, namespaces: tuple[str, ...], ending: asyncio.Event
) -> None:
    """Run kopf; on SIGTERM or SIGINT, set `ending`.

    Raises:
        Exception: what kopf cannot go on after.
    """
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = _NoDifferences()
    # For so long a task and the last sight of an object are kept, beside what we keep of it.
    settings.queueing.idle_timeout = 0.1
    settings.peering.standalone = True
    settings.networking.error_backoffs = _Backoffs()
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + _PATIENCE
    settings.watching.connect_timeout = 5
    settings.watching.chunk_size = _PAGE
    for kind, selector in WATCHED.items():
        if selector:
            settings.watching.label_selectors[_resource(kind)] = selector
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry_of(reconciler, credentials),
        settings=settings,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    # kopf has put handlers of its own there. It would cancel cycles in hand: every task that began after it.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    await kopf.run_tasks(tasks, ignored=others)
