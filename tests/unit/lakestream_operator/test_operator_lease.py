"""One replica leads."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.lease import Election
from lakestream_operator.controller import _Operator
from lakestream_operator.errors import ConflictError, LeadershipLostError, NotFoundError, RetryLaterError
from lakestream_operator.model import Emit, Kind, Reference
from lakestream_operator.observer import stream_of
from lakestream_operator.testing import lakestream

LEASE = Reference(Kind.Lease, "system", "operator")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Leases:
    """An API server with one Lease."""

    def __init__(self) -> None:
        self.lease: Any = None
        self.down = False
        self.hangs = False
        self.says_nothing = False
        """What is written is taken, but not answered."""

    async def get(self, _: Reference) -> Any:
        await self._answer()
        if self.lease is None:
            raise NotFoundError(404, "none")
        return deepcopy(self.lease)

    async def create(self, manifest: Any) -> Any:
        if self.lease is not None:
            raise ConflictError(409, "exists")
        return await self._write(manifest)

    async def replace(self, manifest: Any) -> Any:
        await self._answer()
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ConflictError(409, "changed")
        return await self._write(manifest)

    async def _answer(self) -> None:
        if self.down:
            raise RetryLaterError("down")
        if self.hangs:
            await asyncio.Event().wait()

    async def _write(self, manifest: Any) -> Any:
        version = int((self.lease or manifest)["metadata"].get("resourceVersion", 0)) + 1
        self.lease = deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(version)
        if self.says_nothing:
            await asyncio.Event().wait()
        return deepcopy(self.lease)


def _election(leases: Leases, identity: str, clock: Callable[[], datetime] = lambda: NOW) -> Election:
    return Election(leases, clock, LEASE, identity, timedelta(seconds=15))  # type: ignore[arg-type]


def _time() -> float:
    return asyncio.get_running_loop().time()


def test_one_of_two_leads_and_the_other_takes_over_when_it_falls_silent(play: Any) -> None:
    leases = Leases()
    first, second = _election(leases, "first"), _election(leases, "second")

    async def electing() -> None:
        assert await first._attempt(15)
        assert not await second._attempt(15)
        await asyncio.sleep(14)
        assert not await second._attempt(15)
        assert await first._attempt(15)
        leases.lease["spec"]["renewTime"] = "another"
        await asyncio.sleep(14)
        assert not await second._attempt(15), "it was renewed, whatever the clocks say"
        await asyncio.sleep(16)
        assert await second._attempt(15)
        assert leases.lease["spec"]["leaseTransitions"] == 1
        assert not await first._attempt(15)
        assert first._holder() == "second"

    play(electing())


def test_a_leader_that_ends_in_order_makes_room_at_once(play: Any) -> None:
    leases = Leases()
    first, second = _election(leases, "first"), _election(leases, "second")

    async def electing() -> None:
        await first.acquire()
        assert first.leads()
        await first.release()
        assert not first.leads()
        assert await second._attempt(15)

    play(electing())


def test_a_replica_that_waits_leads_within_a_second_of_the_lease_being_free(play: Any) -> None:
    leases = Leases()
    first, second = _election(leases, "first"), _election(leases, "second")

    async def electing() -> None:
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(3.1)
        await first.release()
        async with asyncio.timeout(1):
            await waiting

    play(electing())


def test_a_replica_that_may_not_see_the_lease_is_not_ready_and_one_that_waits_is(play: Any) -> None:
    leases = Leases()
    operator = _Operator(None, None, None, None, lambda: NOW, CollectorRegistry(), "second")  # type: ignore[arg-type]

    async def electing() -> None:
        leases.down = True
        operator.election = _election(leases, "second")
        waiting = asyncio.create_task(operator.election.acquire())
        await asyncio.sleep(2.5)
        assert operator.unready() == ["no part in the election: down"]
        leases.down = False
        await _election(leases, "first").acquire()
        await asyncio.sleep(2)
        assert (operator.unready(), operator.election.leading) == ([], False)
        waiting.cancel()

    play(electing())


def test_a_leader_that_ends_in_the_middle_of_a_renewal_makes_room_too(play: Any) -> None:
    leases = Leases()
    first, second = _election(leases, "first"), _election(leases, "second")

    async def electing() -> None:
        await first.acquire()
        leases.says_nothing = True
        holding = asyncio.create_task(first.hold())
        await asyncio.sleep(4)
        holding.cancel()
        leases.says_nothing = False
        await first.release()
        assert await second._attempt(15)

    play(electing())


def test_a_lease_that_another_one_has_is_not_released(play: Any) -> None:
    leases = Leases()
    first, second = _election(leases, "first"), _election(leases, "second")

    async def electing() -> None:
        await first.acquire()
        leases.lease["spec"]["holderIdentity"] = ""
        assert await second._attempt(15)
        await first.release()
        assert leases.lease["spec"]["holderIdentity"] == "second"

    play(electing())


@pytest.mark.parametrize("trouble", ["down", "hangs"])
def test_a_leader_that_cannot_renew_stops_before_another_begins(play: Any, trouble: str) -> None:
    leases = Leases()
    first = _election(leases, "first")

    async def electing() -> None:
        await first.acquire()
        began = _time()
        setattr(leases, trouble, True)
        with pytest.raises(LeadershipLostError, match="out of reach"):
            await first.hold()
        assert 9.9 < _time() - began < 10.1, "two thirds of the lease, and then no more"
        assert not first.leads()

    play(electing())


def test_a_renewal_counts_from_when_it_was_asked_for(play: Any) -> None:
    leases = Leases()
    first = _election(leases, "first")

    async def slow(reference: Reference) -> Any:
        await asyncio.sleep(4)
        return deepcopy(leases.lease)

    async def electing() -> None:
        await first.acquire()
        leases.get = slow  # type: ignore[method-assign]
        assert await first._attempt(15)
        assert first._left() == pytest.approx(6)

    play(electing())


def test_time_that_steps_makes_nobody_lead_and_nobody_stop(play: Any) -> None:
    leases = Leases()
    times = iter(NOW + timedelta(hours=hours) for hours in (0, 5, -7, 9, 0, 3, -4, 8, 1, 2))
    first = _election(leases, "first", lambda: next(times))
    second = _election(leases, "second", lambda: NOW + timedelta(days=1))

    async def electing() -> None:
        await first.acquire()
        holding = asyncio.create_task(first.hold())
        for _ in range(5):
            await asyncio.sleep(4)
            assert not await second._attempt(15)
        assert not holding.done()
        holding.cancel()

    play(electing())


def test_a_replica_that_was_frozen_does_nothing_when_it_is_thawed(play: Any) -> None:
    leases = Leases()
    first = _election(leases, "first")
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1", "resourceVersion": "3"}

    async def electing() -> None:
        await first.acquire()
        applier = Applier(None, Cache(), "first", first.leads)  # type: ignore[arg-type]
        await asyncio.sleep(11)  # nobody has renewed
        with pytest.raises(LeadershipLostError):
            await applier.act(stream_of(manifest), Emit("Starting", "x"), NOW)

    play(electing())
