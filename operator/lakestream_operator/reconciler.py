"""One loop per LakeStream: observe, decide, apply. Events only wake it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakestream_api import LakeStreamStatus
from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import Cache, StreamKey
from lakestream_operator.attempts import attempt
from lakestream_operator.claims import Claimant, Place, claimant_of, contested, rivals, taken
from lakestream_operator.clock import Clock
from lakestream_operator.conditions import FAILED, failed
from lakestream_operator.decide import Remembered, decide
from lakestream_operator.errors import OperatorError
from lakestream_operator.metrics import Metrics
from lakestream_operator.model import Action, Emit, Heard, Manifest, Observed, Refusal, Stream, WriterSeen
from lakestream_operator.observer import listen, stream_of
from lakestream_operator.quotas import is_short
from lakestream_operator.settings import JobSettings
from lakestream_operator.status import is_news

logger = logging.getLogger(__name__)

_REST = timedelta(milliseconds=200)
"""Between two cycles of one LakeStream: changes come in swarms."""
_LONGEST_REST = timedelta(minutes=2)
"""The clock that says when to look again may be put back meanwhile."""
_QUOTAS_EVERY = timedelta(minutes=1)
_STATUSES_AT_ONCE = 8
"""Writes of statuses under way from which on those of mere figures are left out: drivers must not wait for their orders
because an API server is behind. It is a quarter of the client's requests at a time."""
_END_WITHIN = timedelta(seconds=10)
"""For cycles in hand, when the operator ends. One that is cut off is done again, by the next operator."""


@dataclass(slots=True)
class _Loop:
    """One LakeStream's loop."""

    manifest: Manifest
    """The LakeStream, as it was seen last."""
    claimant: Claimant
    rivals: tuple[StreamKey, ...] = ()
    """Others that claim what it names."""
    compared: int = -1
    """The claims of all that they are of."""
    contested: str = ""
    """What it names that is another one's: once that one lets go of it, it can be started."""
    taken: frozenset[str] = frozenset()
    """The same of what its drivers were given."""
    starting: tuple[Place, ...] = ()
    """What drivers write that its last cycle asked for; they may not be known yet."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    woken_at: datetime | None = None
    busy_since: datetime | None = None
    wake_at: datetime | None = None
    status: LakeStreamStatus | None = None
    """What was decided last, be it written or not."""
    status_at: datetime | None = None
    """When the status was written last."""
    remembered: Remembered = field(default_factory=Remembered)
    heard: Mapping[str, Heard | None] = field(default_factory=dict)
    """When its drivers were heard of, by writer."""
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    """What was refused of it lately."""
    status_refusal: Refusal | None = None
    """The same of its status."""
    quotas: tuple[Manifest, ...] = ()
    quotas_at: datetime | None = None
    """When they were asked for."""
    bug: Refusal | None = None
    """What has ended the last cycle: before something else is asked for, it is not tried again too soon."""
    task: asyncio.Task[None] | None = None

    def wake_by(self, time: datetime) -> None:
        """Look again at that time at the latest."""
        self.wake_at = min(self.wake_at or time, time)

    def end(self) -> None:
        """At once, whatever it has in hand."""
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True)
class Reconciler:
    """The loops of all LakeStreams."""

    applier: Applier
    cache: Cache
    job: JobSettings
    clock: Clock
    metrics: Metrics
    chance: Callable[[], float] = random.random
    """From 0 to 1: how much longer than it must one waits for a new try."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the cluster is known; before that nothing is decided."""
    relisted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when objects have been listed anew, after a gap in which others may have gone."""
    left: frozenset[str] = frozenset()
    """Namespaces in which nothing is decided, since not all is known of them."""
    _loops: dict[StreamKey, _Loop] = field(default_factory=dict)
    _claims: int = 0
    """How often they have changed."""
    _writing: int = 0
    """Writes of statuses that are under way."""
    _ending: bool = False

    def __post_init__(self) -> None:
        self.cache.wake = self.wake

    def wake(self, key: StreamKey) -> None:
        """Have a LakeStream looked at soon; begin with one that is new, and end with one that is gone."""
        manifest, loop = self.cache.lakestream(key), self._loops.get(key)
        if loop is not None and (manifest is None or manifest["metadata"]["uid"] != loop.manifest["metadata"]["uid"]):
            del self._loops[key]
            loop.end()
            self._claims_changed()
            loop = None
        if manifest is None or (loop is None and self._ending):
            return
        if loop is None:
            loop = self._loops[key] = _Loop(manifest, self._claimant(key, manifest))
            loop.task = asyncio.create_task(self._run(key, loop), name=f"loop of {key[0]}/{key[1]}")
            self._claims_changed()
        elif manifest["metadata"].get("generation") != loop.manifest["metadata"].get("generation"):
            self._claim(loop, self._claimant(key, manifest))
        loop.manifest = manifest
        self._look_soon(loop)

    def begin(self) -> None:
        """Let decisions begin: all that there is is known by now."""
        for key, loop in self._loops.items():
            loop.claimant = self._claimant(key, loop.manifest)
        self._claims_changed()
        self.ready.set()

    def leave(self, namespaces: Set[str]) -> None:
        """Decide nothing in these namespaces, and again in all others."""
        back, self.left = self.left - namespaces, frozenset(namespaces)
        for (namespace, _), loop in self._loops.items():
            if namespace in back:
                self._look_soon(loop)

    def statuses(self) -> Iterable[tuple[StreamKey, LakeStreamStatus]]:
        """The statuses for metrics: as they are, though the API server may refuse or delay their writing; of a
        LakeStream that was not looked at yet, as an earlier operator has left it."""
        for key, loop in self._loops.items():
            status = loop.status or stream_of(loop.manifest).status
            if status is not None:
                yield key, status

    def longest_cycle(self, now: datetime) -> timedelta:
        """How long the longest cycle that is under way has taken."""
        return max((now - one.busy_since for one in self._loops.values() if one.busy_since), default=timedelta())

    async def close(self) -> None:
        """End all loops, each after its cycle in hand."""
        self._ending = True
        tasks = [loop.task for loop in self._loops.values() if loop.task]
        for loop in self._loops.values():
            loop.woken.set()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_WITHIN.total_seconds())
        self.cancel()

    def cancel(self) -> None:
        """End all loops at once, whatever they have in hand."""
        self._ending = True
        for loop in self._loops.values():
            loop.end()

    async def _run(self, key: StreamKey, loop: _Loop) -> None:
        await self.ready.wait()
        while True:
            await self._rest(loop)
            if self._ending:
                return
            loop.woken.clear()
            if key[0] in self.left:
                loop.wake_at = loop.woken_at = loop.bug = None
                continue
            woken_at, loop.woken_at = loop.woken_at, None
            loop.busy_since = now = self.clock()
            try:
                await self._cycle(key, loop, now)
                loop.bug = None
            except Exception as error:
                # A bug that one LakeStream brings to light is not the others' business.
                self._failed(loop, error)
                logger.exception("the cycle of %s/%s failed; again at %s", *key, loop.wake_at)
                await self._tell_of(loop, error)
            finally:
                loop.busy_since = None
            self.metrics.cycle(began=now, woken=woken_at, ended=self.clock())
            await asyncio.sleep(_REST.total_seconds())

    async def _rest(self, loop: _Loop) -> None:
        """Wait until there is something to do, or it is time to look."""
        while True:
            seconds = None
            if loop.wake_at is not None:
                seconds = min(max(0.0, (loop.wake_at - self.clock()).total_seconds()), _LONGEST_REST.total_seconds())
            try:
                # Not by `wait_for`: before Python 3.12 a task that is cancelled while it is woken would go on for ever.
                async with asyncio.timeout(seconds):
                    await loop.woken.wait()
            except TimeoutError:
                return
            if self._ending or not loop.bug or loop.bug.about != stream_of(loop.manifest).asked:
                return
            loop.woken.clear()

    def _failed(self, loop: _Loop, error: Exception) -> None:
        """Count a bug."""
        self.metrics.failed(type(error).__name__)
        asked = stream_of(loop.manifest).asked
        loop.bug = Refusal.of(error, asked, loop.bug, self.clock(), self.chance())
        loop.wake_at = loop.bug.retry_at

    async def _tell_of(self, loop: _Loop, error: Exception) -> None:
        """Say that a LakeStream has been failed on again: nobody else would."""
        bug, stream, now = loop.bug, stream_of(loop.manifest), self.clock()
        if bug is None or not bug.told:
            return
        status = failed(stream, error, now)
        told = next(one for one in status.conditions if one.reason == FAILED)
        try:
            if bug.is_new:
                await self.applier.act(stream, Emit(told.reason, told.message, warning=True), now)
            await self._write(loop, stream, status, now)
        except Exception:
            logger.exception("that the cycle of %s/%s failed could not be told", stream.namespace, stream.name)

    async def _cycle(self, key: StreamKey, loop: _Loop, now: datetime) -> None:
        """Look, decide, act."""
        await self._look_at_quotas(stream_of(loop.manifest), loop, self.cache.writers(key), now)
        # From here to `starting` nothing is awaited: who comes to name the same place meanwhile would start there too.
        stream = stream_of(loop.manifest)
        writers = listen(self.cache.writers(key), loop.heard, now)
        loop.heard = {name: seen.heard for name, seen in writers.items()}
        self._look_at_claims(key, loop, stream, writers)
        observed = Observed(stream, writers, loop.contested, loop.taken, loop.refusals, loop.quotas)
        decision = decide(observed, self.job, now, loop.remembered)
        loop.starting = loop.claimant.places if decision.starts else ()

        async def act(action: Action) -> None:
            await self.applier.act(stream, action, now)
            self.metrics.acted(type(action).__name__)

        done = await attempt(observed, decision.actions, act, now, self.chance())
        loop.refusals, loop.wake_at = done.refusals, decision.wake_at
        loop.remembered = done.remembered(decision, loop.remembered)
        if loop.refusals != observed.refusals:
            self._refused(key, observed.refusals, loop.refusals)
            # What was refused, or is no more, is said at once.
            self.wake(key)
        if decision.status is not None:
            await self._write(loop, stream, decision.status, now)

    def _look_at_claims(self, key: StreamKey, loop: _Loop, stream: Stream, writers: Mapping[str, WriterSeen]) -> None:
        """Find out whether it names what is another one's, and let others know what is not its own any more."""
        self._claim(loop, claimant_of(stream, writers.values()).after(loop.claimant))
        if loop.compared != self._claims:
            others = (other.claimant for other_key, other in self._loops.items() if other_key != key)
            loop.rivals = tuple((one.namespace, one.name) for one in rivals(loop.claimant, others))
            loop.compared = self._claims
        others_now = [self._claimant(rival, self._loops[rival].manifest) for rival in loop.rivals]
        loop.contested, loop.taken = contested(loop.claimant, others_now), taken(loop.claimant, others_now)

    async def _look_at_quotas(
        self, stream: Stream, loop: _Loop, writers: Mapping[str, WriterSeen], now: datetime
    ) -> None:
        """Ask for quotas where executors are missing, and only then: they change with each pod of the namespace."""
        if not any(is_short(seen) for seen in writers.values()):
            loop.quotas, loop.quotas_at = (), None
        elif loop.quotas_at is None or abs(now - loop.quotas_at) >= _QUOTAS_EVERY:
            loop.quotas, loop.quotas_at = await self.applier.quotas(stream), now

    def _refused(self, key: StreamKey, before: Mapping[str, Refusal], after: Mapping[str, Refusal]) -> None:
        for name, one in after.items():
            if one != before.get(name):
                self.metrics.failed(one.reason)
                level = logging.WARNING if one.told else logging.INFO
                logger.log(level, "%s/%s %s: %s", *key, name, one.message)

    async def _write(self, loop: _Loop, stream: Stream, status: LakeStreamStatus, now: datetime) -> None:
        """Write the status, if it is news."""
        loop.status = status
        # A clock that was put back since says no less than one that went on.
        silent = abs(now - loop.status_at) if loop.status_at else timedelta.max
        if self._writing >= _STATUSES_AT_ONCE:
            silent = timedelta()
        if not is_news(stream.status, status, silent):
            return
        if loop.status_refusal and loop.status_refusal.holds(stream.asked, now):
            loop.wake_by(loop.status_refusal.retry_at)
            return
        self._writing += 1
        try:
            await self.applier.write_status(stream, status)
        except OperatorError as error:
            loop.status_refusal = Refusal.of(error, stream.asked, loop.status_refusal, now, self.chance())
            self._refused((stream.namespace, stream.name), {}, {"status": loop.status_refusal})
            loop.wake_by(loop.status_refusal.retry_at)
            return
        finally:
            self._writing -= 1
        loop.status_at, loop.status_refusal = now, None

    def _claim(self, loop: _Loop, claimant: Claimant) -> None:
        """Take down what a LakeStream claims, and let others know if that is something else than before."""
        before, loop.claimant = loop.claimant, claimant
        if claimant.claims != before.claims:
            self._claims_changed()
        elif (claimant.given, claimant.there) != (before.given, before.there):
            self._look_at_contested()

    def _claims_changed(self) -> None:
        self._claims += 1
        self._look_at_contested()

    def _look_at_contested(self) -> None:
        for loop in self._loops.values():
            if loop.contested or loop.taken:
                self._look_soon(loop)

    def _look_soon(self, loop: _Loop) -> None:
        loop.woken_at = loop.woken_at or self.clock()
        loop.woken.set()

    def _claimant(self, key: StreamKey, manifest: Manifest) -> Claimant:
        known = self._loops.get(key)
        try:
            now = claimant_of(stream_of(manifest), self.cache.writers(key).values())
            return now.starting(known.starting).after(known.claimant) if known else now
        except Exception:
            # A bug, which is not the others' business: its own cycle meets it too, tells of it, and starts nothing.
            logger.debug("what %s/%s claims cannot be told", *key, exc_info=True)
            return known.claimant if known else Claimant(*key, age=("", ""), places=())
