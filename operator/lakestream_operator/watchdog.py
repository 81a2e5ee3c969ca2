"""Whether the operator does its work: told by comparing with the API server, not by being alive.

kopf lists again after a gap in a watch, and does not tell of objects that were deleted in between, while here much
rests on knowing that a driver's pod is gone. So what is known is compared with what there is: after a gap, and now and
then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakestream_operator.adapters.cache import WATCHED
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.clock import Clock
from lakestream_operator.errors import ForbiddenError, NotFoundError, NotServedError, OperatorError, StoreWentBackError
from lakestream_operator.model import Kind, Reference
from lakestream_operator.reconciler import Reconciler

logger = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)
_POLL, _POLLS = timedelta(milliseconds=100), 50
"""Of what is told at first; objects that go meanwhile are found by another list."""
SILENT = timedelta(minutes=3)
HUNG = timedelta(minutes=5)
"""A cycle makes a few dozen requests, each of which takes 30 s at most and normally milliseconds."""


_SOME = 5
"""Objects that are named of any number."""
_MISSING = (NotFoundError, NotServedError)
"""What is said of a kind that is not defined."""


@dataclass(slots=True)
class Watchdog:
    """Looks after the watches."""

    client: KubeClient
    reconciler: Reconciler
    namespaces: tuple[str, ...]
    clock: Clock
    began_at: datetime
    served: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all kinds could be listed: kopf does not notice one that is defined after it has begun."""
    done_at: datetime | None = None
    failure: str = ""
    """Why they could not be listed, the last time."""
    behind: dict[Reference, int] = field(default_factory=dict)
    """Of objects of which kopf had not told all: the version that there was."""
    missed: frozenset[Reference] = frozenset()
    """Those of them that it should have told of by now."""
    newest: dict[Kind, int] = field(default_factory=dict)
    """The newest version of each kind that was known at the last look."""
    refused: frozenset[str] = frozenset()
    """Namespaces that could not be listed the last time, though others could."""

    async def run(self) -> None:
        """Never returns.

        Raises:
            StoreWentBackError: all has to begin anew.
        """
        while True:
            try:
                await self.look()
                self.failure = ""
                self.reconciler.metrics.listed(everything=not self.refused)
            except StoreWentBackError:
                raise
            except OperatorError as error:
                self.failure = f"{error}"
                self.reconciler.metrics.listed(everything=False)
                missing = "; is what defines them installed (of sparkapplications, the Kubeflow Spark Operator)?"
                level, hint = (logging.ERROR, missing) if isinstance(error, _MISSING) else (logging.WARNING, "")
                logger.log(level, "what there is could not be listed: %s%s", error, hint)
            await (self._rest() if self.reconciler.ready.is_set() else self._wait_for_kopf())

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(EVERY.total_seconds()):
                await self.reconciler.relisted.wait()
                # There may be more to come.
                await asyncio.sleep(1)

    async def _wait_for_kopf(self) -> None:
        """Let decisions begin once kopf has told of all that there was."""
        for _ in range(_POLLS):
            await asyncio.sleep(_POLL.total_seconds())
            if self.served.is_set() and not _older(self.reconciler.cache.versions(), self.behind):
                logger.info("the cluster is known: %d objects of LakeStreams", len(self.reconciler.cache))
                self.reconciler.begin()
                return
        if waited_for := _older(self.reconciler.cache.versions(), self.behind):
            logger.info("nothing is decided yet: not told of so far are %s", _named(waited_for))

    async def look(self) -> None:
        """Forget what is gone, and find out what is not known yet.

        Raises:
            OperatorError: something could not be listed, and not for lack of one of several namespaces.
            StoreWentBackError: what there is is older than what was known at the last look.
        """
        self.reconciler.relisted.clear()
        known, there = self.reconciler.cache.versions(), dict[Reference, int]()
        refused = dict[str, OperatorError]()
        for namespace in self.namespaces or (None,):
            try:
                there |= await self._listed(namespace, known)
            except (ForbiddenError, *_MISSING) as error:
                # Its Role goes with a namespace that is deleted: that is nothing to the others.
                if namespace is None or len(refused) + 1 == len(self.namespaces):
                    raise
                refused[namespace] = error
        missed = _older(known, self.behind) & there.keys()
        self._refuse(refused, {one.namespace for one in missed})
        self.missed = frozenset(missed) if self.reconciler.ready.is_set() else frozenset()
        if self.missed:
            logger.warning("the watches have missed changes of %s", _named(self.missed))
        self.behind = {one: there[one] for one in _older(known, there)}
        for one, version in known.items():
            self.newest[one.kind] = max(version, self.newest.get(one.kind, 0))
        self.done_at = self.clock()
        self.served.set()

    async def _listed(self, namespace: str | None, known: Mapping[Reference, int]) -> dict[Reference, int]:
        """What there is in a namespace (None: in all); what else was known of it is forgotten."""
        there = dict[Reference, int]()
        for kind, selector in WATCHED.items():
            found, as_of = await self.client.list_versions(kind, namespace, selector)
            if as_of < self.newest.get(kind, 0):
                # Changes would be taken for old news: those of years, if it comes to that.
                raise StoreWentBackError(
                    f"{kind.value.plural} were known in version {self.newest[kind]}, and the API server is at {as_of}:"
                    " its store was put back, as from a snapshot; the operator ends, and begins anew"
                )
            for one in known.keys() - found.keys():
                if one.kind is kind and namespace in (None, one.namespace):
                    # What is newer than the list was made since.
                    self.reconciler.cache.remove(one, as_of)
            there |= found
        return there

    def _refuse(self, refused: Mapping[str, OperatorError], behind: Set[str]) -> None:
        """Have nothing decided in namespaces that cannot be listed, nor before kopf has told of all in one that can be
        again."""
        for namespace in refused.keys() - self.refused:
            logger.warning("nothing is done in %s, which cannot be listed: %s", namespace, refused[namespace])
        waiting = self.refused | behind if self.reconciler.ready.is_set() else frozenset[str]()
        self.reconciler.leave(refused.keys() | (self.reconciler.left & waiting))
        self.refused = frozenset(refused)

    def problems(self) -> list[str]:
        """What is wrong, for `/healthz`."""
        now, found = self.clock(), []
        if now - (self.done_at or self.began_at) > EVERY + SILENT:
            found.append(f"what there is could last be listed at {self.done_at}: {self.failure}")
        if self.missed:
            found.append(f"the watches have missed changes of {_named(self.missed)}")
        if (longest := self.reconciler.longest_cycle(now)) > HUNG:
            found.append(f"a cycle has taken {longest}")
        return found

    def unready(self) -> list[str]:
        """What is not there yet, for `/readyz`."""
        if self.reconciler.ready.is_set():
            return []
        return [f"all objects are being listed{f', in vain: {self.failure}' if self.failure else ''}"]


def _named(objects: Set[Reference]) -> str:
    """How many objects there are, and some of them."""
    some = ", ".join(sorted(map(str, objects))[:_SOME])
    return f"{len(objects)} objects: {some}{', …' if len(objects) > _SOME else ''}"


def _older(known: Mapping[Reference, int], there: Mapping[Reference, int]) -> set[Reference]:
    """What is known in no version as new as the one that there is."""
    return {one for one, version in there.items() if known.get(one, 0) < version}
