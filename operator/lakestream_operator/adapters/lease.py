"""Leader election by a Lease, as Kubernetes's own controllers do it.

A Lease and not kopf's peering: it needs no resource definition of its own, and a holder that cannot renew stops by its
own clock before another one begins by its. That clock is monotonic: a step of the machine's time makes nobody lead.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lakestream_operator.adapters.client import KubeClient, Object
from lakestream_operator.clock import Clock
from lakestream_operator.errors import ConflictError, LeadershipLostError, NotFoundError, OperatorError
from lakestream_operator.model import Kind, Reference

logger = logging.getLogger(__name__)

_LOOK = 1.0
"""Seconds between two looks of a replica that waits: for so long nobody acts after a leader that ended in order."""


def _monotonic() -> float:
    """Seconds by the clock that timeouts go by."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class Election:
    """One replica's part in the election."""

    client: KubeClient
    """Of its own: a renewal must not wait behind other requests, nor use a connection that they have filled."""
    clock: Clock
    """For people: what is written into the Lease. Nothing is decided by it."""
    reference: Reference
    identity: str
    duration: timedelta
    """Without renewal, until another replica takes over. The holder stops after two thirds of it."""
    leading: bool = False
    """Whether this replica may act."""
    failure: str = ""
    """Why the Lease could not be looked at the last time; empty: it could, be it that another replica has it."""
    _lease: Object | None = None
    _seen: tuple[Any, float] | None = None
    """The last sign of another holder, and when it was seen first: clocks of two machines are not compared."""
    _renewed_at: float = 0.0
    """When the renewal that last succeeded was begun."""

    async def acquire(self) -> None:
        """Return once this replica leads."""
        while not await self._attempt(self._seconds):
            await asyncio.sleep(_LOOK)
        self.leading = True
        logger.info("%s leads by %s", self.identity, self.reference)

    async def hold(self) -> None:
        """Renew for ever.

        Raises:
            LeadershipLostError: it could not be renewed in time, or another replica leads.
        """
        while True:
            await asyncio.sleep(min(self._seconds / 5, self._left()))
            # What is left is the timeout of the request: one that hangs must not be waited for beyond it.
            renewed = await self._attempt(self._left())
            if not renewed and (self._holder() or self._left() <= 0):
                self.leading = False
                raise LeadershipLostError(
                    f"{self.reference} is lost to {self._holder() or 'an API server out of reach'}"
                )

    async def release(self) -> None:
        """Let another replica lead at once."""
        if not self.leading:
            return
        self.leading = False
        try:
            # Read anew, since the renewal that was under way may have arrived; and once more, if it arrives only now.
            for _ in range(2):
                lease = await self.client.get(self.reference)
                if lease["spec"].get("holderIdentity") != self.identity:
                    return
                with suppress(ConflictError):
                    await self.client.replace({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
                    return
        except OperatorError as error:
            logger.info("%s was not released, and runs out: %s", self.reference, error)

    def leads(self) -> bool:
        """Whether this replica may act now: a process that was frozen may not, though nothing has told it yet."""
        return self.leading and self._left() > 0

    @property
    def _seconds(self) -> float:
        return self.duration.total_seconds()

    def _left(self) -> float:
        """Seconds for which this replica may still act."""
        return max(self._renewed_at + self._seconds * 2 / 3 - _monotonic(), 0.0)

    def _holder(self) -> str:
        """Another replica that leads."""
        holder: str = (self._lease or {}).get("spec", {}).get("holderIdentity") or ""
        return "" if holder == self.identity else holder

    async def _attempt(self, within: float) -> bool:
        """Take or renew the lease, if it is free or ours, within so many seconds."""
        began, taken = _monotonic(), False
        failure, self.failure = self.failure, ""
        try:
            async with asyncio.timeout(within):
                taken = await self._take()
        except ConflictError:
            pass
        except TimeoutError:
            self.failure = f"no answer within {within:.1f} s"
        except OperatorError as error:
            self.failure = f"{error}"
        if self.failure and self.failure != failure:
            logger.warning("%s: %s", self.reference, self.failure)
        if taken:
            self._renewed_at = began
        return taken

    async def _take(self) -> bool:
        try:
            self._lease = await self.client.get(self.reference)
        except NotFoundError:
            self._lease = await self.client.create(self._body({}, transitions=0))
            return True
        spec = self._lease.get("spec", {})
        if self._holder() and not self._expired(spec):
            return False
        ours = spec.get("holderIdentity") == self.identity
        transitions = spec.get("leaseTransitions", 0) + (0 if ours else 1)
        self._lease = await self.client.replace(self._body(self._lease, transitions))
        return True

    def _expired(self, spec: Object) -> bool:
        now = _monotonic()
        sign = (spec.get("holderIdentity"), spec.get("renewTime"))
        if self._seen is None or self._seen[0] != sign:
            self._seen = (sign, now)
        return now - self._seen[1] > float(spec.get("leaseDurationSeconds", 0))

    def _body(self, lease: Object, transitions: int) -> Object:
        time = self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
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
