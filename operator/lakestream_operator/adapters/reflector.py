"""Keeps the cache like the cluster: lists once, then watches, and lists again when a watch is lost for too long.

kopf's own watches serve LakeStreams, and are not used for the rest: after a list that follows a gap they do not tell
of objects that were deleted in between, while here much rests on knowing that a driver's pod is gone.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakestream_api.names import MANAGED_BY, STREAM_LABEL
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.clock import Clock
from lakestream_operator.errors import ExpiredError, NotFoundError, OperatorError
from lakestream_operator.model import Kind, Reference

logger = logging.getLogger(__name__)

WATCHED = (Kind.SparkApplication, Kind.Pod, Kind.ConfigMap, Kind.ServiceAccount, Kind.RoleBinding)

# Pods too: they are made by Spark, which is given the labels of the writer.
_SELECTOR = f"{STREAM_LABEL},app.kubernetes.io/managed-by={MANAGED_BY}"
_WATCH_SECONDS = 60
"""A watch is ended and begun anew so often: then it has said that it lives, though nothing happened."""
_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=30)


@dataclass(slots=True)
class Reflector:
    """One kind in one namespace (None: in all)."""

    client: KubeClient
    cache: Cache
    clock: Clock
    kind: Kind
    namespace: str | None
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all objects have been listed."""
    failure: str = ""
    """Why it could not be listed or watched, the last time."""
    heard_at: datetime | None = None
    """When the API server last answered."""

    async def run(self) -> None:
        """Never returns; errors are told and tried again."""
        version, pause = "", _PAUSE
        while True:
            try:
                if not version:
                    version = await self._list()
                version = await self._watch(version)
                pause = _PAUSE
                continue
            except ExpiredError:
                logger.info("the watch of %s is lost; listing again", self.kind.value.plural)
                version = ""
            except OperatorError as error:
                self.failure = f"{error}"
                missing = "; is what defines them installed (of sparkapplications, the Kubeflow Spark Operator)?"
                level, hint = (logging.ERROR, missing) if isinstance(error, NotFoundError) else (logging.WARNING, "")
                logger.log(level, "watching %s: %s%s", self.kind.value.plural, error, hint)
                pause = min(2 * pause, _LONGEST_PAUSE)
            await asyncio.sleep(pause.total_seconds())

    async def _list(self) -> str:
        found, version = await self.client.list_all(self.kind, self.namespace, _SELECTOR)
        self.cache.replace(self.kind, self.namespace, found)
        self.heard_at = self.clock()
        self.synced.set()
        return version

    async def _watch(self, version: str) -> str:
        stream = self.client.watch(self.kind, self.namespace, _SELECTOR, version, _WATCH_SECONDS)
        async for event, manifest in stream:
            self.heard_at = self.clock()
            metadata = manifest["metadata"]
            version = metadata["resourceVersion"]
            if event == "DELETED":
                self.cache.remove(Reference(self.kind, metadata["namespace"], metadata["name"]))
            elif event != "BOOKMARK":
                self.cache.put(self.kind, manifest)
        self.heard_at = self.clock()
        return version
