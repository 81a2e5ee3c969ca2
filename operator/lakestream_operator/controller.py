"""Puts the parts of the operator together and runs them until the process is to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client import CollectorRegistry

from lakestream_api.names import NAMESPACE_VARIABLE
from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import Credentials, credentials_of
from lakestream_operator.adapters.lease import Election
from lakestream_operator.adapters.web import serve_health, serve_metrics
from lakestream_operator.clock import Clock, ServerClock
from lakestream_operator.handlers import watch
from lakestream_operator.metrics import Metrics, StreamMetrics
from lakestream_operator.model import Kind, Reference
from lakestream_operator.reconciler import Reconciler
from lakestream_operator.settings import Settings
from lakestream_operator.watchdog import Watchdog

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Operator:
    """What runs in the process."""

    settings: Settings
    credentials: Credentials
    client: KubeClient
    leases: KubeClient
    """For the Lease alone."""
    clock: Clock
    registry: CollectorRegistry
    identity: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    election: Election | None = None
    """There once this replica waits to lead."""
    watchdog: Watchdog | None = None
    """There once this replica leads."""

    async def run(self) -> None:
        """Wait until this replica leads, then act."""
        settings = self.settings.leader_election
        if not settings.enabled:
            await self._lead(lambda: True)
            return
        namespace = settings.namespace or os.environ.get(NAMESPACE_VARIABLE, "default")
        reference = Reference(Kind.Lease, namespace, settings.lease_name)
        duration = timedelta(seconds=settings.duration_seconds)
        election = self.election = Election(self.leases, self.clock, reference, self.identity, duration)
        await _first_of(election.acquire(), self.stop.wait())
        if not election.leading:
            return
        try:
            # Where the Lease is lost, another replica may act by now; nothing of this one may be finished.
            await _first_of(election.hold(), self._lead(election.leads))
        finally:
            await election.release()

    def unready(self) -> list[str]:
        """What is not there yet, for `/readyz`. To wait for another replica's Lease is to be ready to take over."""
        if self.watchdog is not None:
            return self.watchdog.unready()
        return [f"no part in the election: {self.election.failure}"] if self.election and self.election.failure else []

    async def _lead(self, leads: Callable[[], bool]) -> None:
        """Watch and act until the process is to end, or a part of it fails."""
        cache = Cache()
        applier = Applier(self.client, cache, self.identity, leads)
        reconciler = Reconciler(applier, cache, self.settings.job, self.clock, Metrics(self.registry))
        self.registry.register(StreamMetrics(reconciler.statuses))
        self.watchdog = Watchdog(self.client, reconciler, self.settings.namespaces, self.clock, self.clock())
        watching, stopping = self._watch(reconciler, self.watchdog), self._stop(reconciler)
        # Without the Lease, or with a part that failed, nothing that is in hand may be finished.
        await _first_of(self.watchdog.run(), watching, stopping, then=reconciler.cancel)

    async def _watch(self, reconciler: Reconciler, watchdog: Watchdog) -> None:
        await watchdog.served.wait()
        await watch(reconciler, self.credentials, self.settings.namespaces, self.stop)

    async def _stop(self, reconciler: Reconciler) -> None:
        await self.stop.wait()
        await reconciler.close()


async def _first_of(*parts: Coroutine[None, None, object], then: Callable[[], object] = lambda: None) -> None:
    """Run parts until one of them ends, be it by an error, which is raised; then end the others."""
    tasks = [asyncio.create_task(one) for one in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        then()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def run_controller(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Raises:
        SettingsError: there are no usable credentials.
        LeadershipLostError: another replica leads now.
    """
    identity = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        credentials = await stack.enter_async_context(credentials_of(os.environ))
        clock = ServerClock()
        client, leases = [await stack.enter_async_context(KubeClient(credentials, clock)) for _ in range(2)]
        operator = _Operator(settings, credentials, client, leases, clock, CollectorRegistry(), identity)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, operator.stop.set)
        health = serve_health(
            settings.health.port,
            lambda: operator.watchdog.problems() if operator.watchdog else [],
            operator.unready,
        )
        metrics = serve_metrics(settings.metrics.port, operator.registry)
        ports = [await stack.enter_async_context(one) for one in (health, metrics)]
        logger.info("%s serves health on port %d and metrics on port %d", identity, *ports)
        await operator.run()
        logger.info("ended in order")
