"""Whether the operator does its work: told by comparing with the API server, not by being alive."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakestream_operator.adapters.client import KubeClient, Object
from lakestream_operator.adapters.reflector import Reflector
from lakestream_operator.clock import Clock
from lakestream_operator.errors import OperatorError
from lakestream_operator.model import Kind
from lakestream_operator.reconciler import Reconciler

logger = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)
SILENT = timedelta(minutes=3)
"""A watch begins anew each minute; one that was not heard of for so long is dead."""
HUNG = timedelta(minutes=5)
"""A cycle makes a few dozen requests, each of which takes 30 s at most and normally milliseconds."""
_LATE = timedelta(seconds=5)
MISSES = 2


@dataclass(slots=True)
class Watchdog:
    """Looks after the watches: finds LakeStreams that kopf has not told of, and tells of them itself."""

    client: KubeClient
    reconciler: Reconciler
    reflectors: tuple[Reflector, ...]
    namespaces: tuple[str, ...]
    clock: Clock
    began_at: datetime
    done_at: datetime | None = None
    misses: int = 0
    """Comparisons in a row that found LakeStreams which kopf had missed."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            await asyncio.sleep(EVERY.total_seconds())
            try:
                await self._once()
            except OperatorError as error:
                logger.warning("whether changes are missed could not be told: %s", error)

    async def _once(self) -> None:
        listed = await self._list()
        if self._unknown(listed):
            await asyncio.sleep(_LATE.total_seconds())
        missed = self._unknown(listed)
        for manifest in missed:
            self.reconciler.saw(manifest)
        there = {_key(manifest) for manifest in listed}
        gone = [key for key in self.reconciler.generations() if key not in there]
        if gone:
            # One that was made since is not in the list either.
            there |= {_key(manifest) for manifest in await self._list()}
        for key in gone:
            if key not in there:
                self.reconciler.gone(key)
        self.misses = self.misses + 1 if missed else 0
        self.done_at = self.clock()

    async def _list(self) -> list[Object]:
        found: list[Object] = []
        for namespace in self.namespaces or (None,):
            found += (await self.client.list_all(Kind.LakeStream, namespace))[0]
        return found

    def _unknown(self, listed: list[Object]) -> list[Object]:
        known = self.reconciler.generations()
        return [one for one in listed if known.get(_key(one), -1) < one["metadata"]["generation"]]

    def problems(self) -> list[str]:
        """What is wrong, for `/healthz`."""
        now = self.clock()
        found = [
            f"the watch of {one.kind.value.plural} was last heard of at {one.heard_at}"
            for one in self.reflectors
            if now - (one.heard_at or self.began_at) > SILENT
        ]
        if now - (self.done_at or self.began_at) > EVERY + SILENT:
            found.append(f"LakeStreams could last be listed at {self.done_at}")
        if self.misses >= MISSES:
            found.append("the watch of LakeStreams misses changes")
        if (longest := self.reconciler.longest_cycle(now)) > HUNG:
            found.append(f"a cycle has taken {longest}")
        return found

    def unready(self) -> list[str]:
        """What is not there yet, for `/readyz`."""
        return [
            f"{one.kind.value.plural} are being listed{f', in vain: {one.failure}' if one.failure else ''}"
            for one in self.reflectors
            if not one.synced.is_set()
        ]


def _key(manifest: Object) -> tuple[str, str]:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]
