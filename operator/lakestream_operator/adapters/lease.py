"""Leader election by a Lease, as Kubernetes's own controllers do it.

A Lease and not kopf's peering: it needs no resource definition of its own, and a holder that cannot renew stops by its
own clock before another one begins by its.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lakestream_operator.adapters.client import KubeClient, Object
from lakestream_operator.clock import Clock
from lakestream_operator.errors import ConflictError, LeadershipLostError, NotFoundError, OperatorError
from lakestream_operator.model import Kind, Reference

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Election:
    """One replica's part in the election."""

    client: KubeClient
    clock: Clock
    reference: Reference
    identity: str
    duration: timedelta
    leading: bool = False
    """Whether this replica may act."""
    _lease: Object | None = None
    _seen: tuple[Any, datetime] | None = None
    """The last sign of another holder, and when it was seen first: clocks of two machines are not compared."""
    _renewed_at: datetime | None = field(default=None)

    async def acquire(self) -> None:
        """Return once this replica leads."""
        while not await self._attempt():
            await asyncio.sleep((self.duration / 5).total_seconds())
        self.leading = True
        logger.info("%s leads by %s", self.identity, self.reference)

    async def hold(self) -> None:
        """Renew for ever.

        Raises:
            LeadershipLostError: it could not be renewed in time, or another replica leads.
        """
        while True:
            await asyncio.sleep((self.duration / 5).total_seconds())
            renewed = await self._attempt()
            assert self._renewed_at is not None  # acquire
            if not renewed and (self._holder() or self.clock() - self._renewed_at > self.duration * 2 / 3):
                self.leading = False
                raise LeadershipLostError(
                    f"{self.reference} is lost to {self._holder() or 'an API server out of reach'}"
                )

    async def release(self) -> None:
        """Let another replica lead at once."""
        if not self.leading or self._lease is None:
            return
        self.leading = False
        try:
            await self.client.replace({**self._lease, "spec": {**self._lease["spec"], "holderIdentity": ""}})
        except OperatorError as error:
            logger.info("%s was not released, and runs out: %s", self.reference, error)

    def _holder(self) -> str:
        """Another replica that leads."""
        holder: str = (self._lease or {}).get("spec", {}).get("holderIdentity") or ""
        return "" if holder == self.identity else holder

    async def _attempt(self) -> bool:
        """Take or renew the lease, if it is free or ours."""
        now = self.clock()
        try:
            return await self._take(now)
        except ConflictError:
            return False
        except OperatorError as error:
            logger.warning("%s: %s", self.reference, error)
            return False

    async def _take(self, now: datetime) -> bool:
        try:
            self._lease = await self.client.get(self.reference)
        except NotFoundError:
            self._lease = await self.client.create(self._body({}, now, transitions=0))
            self._renewed_at = now
            return True
        spec = self._lease.get("spec", {})
        if self._holder() and not self._expired(spec, now):
            return False
        ours = spec.get("holderIdentity") == self.identity
        transitions = spec.get("leaseTransitions", 0) + (0 if ours else 1)
        self._lease = await self.client.replace(self._body(self._lease, now, transitions))
        self._renewed_at = now
        return True

    def _expired(self, spec: Object, now: datetime) -> bool:
        sign = (spec.get("holderIdentity"), spec.get("renewTime"))
        if self._seen is None or self._seen[0] != sign:
            self._seen = (sign, now)
        return now - self._seen[1] > timedelta(seconds=spec.get("leaseDurationSeconds", 0))

    def _body(self, lease: Object, now: datetime, transitions: int) -> Object:
        time = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = lease.get("spec", {})
        ours = before.get("holderIdentity") == self.identity
        names = {"name": self.reference.name, "namespace": self.reference.namespace}
        return {
            "apiVersion": Kind.Lease.api_version,
            "kind": Kind.Lease.name,
            "metadata": lease.get("metadata", names),
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": round(self.duration.total_seconds()),
                "acquireTime": before.get("acquireTime", time) if ours else time,
                "renewTime": time,
                "leaseTransitions": transitions,
            },
        }
