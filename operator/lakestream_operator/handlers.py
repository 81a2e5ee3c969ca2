"""What kopf does: it watches LakeStreams, and keeps the process's watch on them alive.

One handler, of the kind that keeps nothing in the object: the reconciler makes all decisions from what is, so that an
event which is lost, late or told twice does no harm. Finalizers and progress of kopf's own are not used; it would let
an object go whose deletion began while no operator ran.
"""

from __future__ import annotations

import asyncio
from typing import Any

import kopf

from lakestream_api.names import GROUP, PLURAL, VERSION
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.reconciler import Reconciler

_WATCH_SECONDS = 60


def registry_of(reconciler: Reconciler, credentials: Credentials) -> kopf.OperatorRegistry:
    """The handlers."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=credentials.server,
            ca_data=credentials.ca_data,
            insecure=credentials.insecure,
            certificate_data=credentials.certificate,
            private_key_data=credentials.key,
            scheme="Bearer",
            token=await credentials.current_token(),
        )

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def noticed(type: str | None, body: kopf.Body, namespace: str | None, name: str | None, **_: Any) -> None:
        if type == "DELETED":
            reconciler.gone((str(namespace), str(name)))
        else:
            reconciler.saw(dict(body))

    return registry


async def watch(
    reconciler: Reconciler, credentials: Credentials, namespaces: tuple[str, ...], stop: asyncio.Event
) -> None:
    """Run kopf until `stop` is set, or the process gets SIGTERM or SIGINT."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + 10
    await kopf.operator(
        registry=registry_of(reconciler, credentials),
        settings=settings,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
    )
