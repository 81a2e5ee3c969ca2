"""One replica leads."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from lakestream_operator.adapters.lease import Election
from lakestream_operator.errors import ConflictError, LeadershipLostError, NotFoundError, RetryLaterError
from lakestream_operator.model import Kind, Reference

LEASE = Reference(Kind.Lease, "system", "operator")


class Leases:
    """An API server with one Lease."""

    def __init__(self) -> None:
        self.lease: Any = None
        self.down = False

    async def get(self, _: Reference) -> Any:
        if self.down:
            raise RetryLaterError("down")
        if self.lease is None:
            raise NotFoundError(404, "none")
        return deepcopy(self.lease)

    async def create(self, manifest: Any) -> Any:
        if self.lease is not None:
            raise ConflictError(409, "exists")
        return await self._write(manifest)

    async def replace(self, manifest: Any) -> Any:
        if self.down:
            raise RetryLaterError("down")
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ConflictError(409, "changed")
        return await self._write(manifest)

    async def _write(self, manifest: Any) -> Any:
        version = int((self.lease or manifest)["metadata"].get("resourceVersion", 0)) + 1
        self.lease = deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(version)
        return deepcopy(self.lease)


def _election(leases: Leases, clock: Any, identity: str) -> Election:
    return Election(leases, clock, LEASE, identity, timedelta(seconds=15))  # type: ignore[arg-type]


def test_one_of_two_leads_and_the_other_takes_over_when_it_falls_silent(run: Any, clock: Any) -> None:
    leases = Leases()
    first, second = _election(leases, clock, "first"), _election(leases, clock, "second")

    async def electing() -> None:
        assert await first._attempt()
        assert not await second._attempt()
        clock.move(14)
        assert not await second._attempt()
        assert await first._attempt()
        clock.move(14)
        assert not await second._attempt(), "it was renewed, whatever the clocks say"
        clock.move(16)
        assert await second._attempt()
        assert leases.lease["spec"]["leaseTransitions"] == 1
        assert not await first._attempt()
        assert first._holder() == "second"

    run(electing())


def test_a_leader_that_ends_in_order_makes_room_at_once(run: Any, clock: Any) -> None:
    leases = Leases()
    first, second = _election(leases, clock, "first"), _election(leases, clock, "second")

    async def electing() -> None:
        await first.acquire()
        assert first.leading
        await first.release()
        assert not first.leading
        assert await second._attempt()

    run(electing())


def test_a_leader_that_cannot_renew_stops_before_another_begins(
    run: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = Leases()
    first = _election(leases, clock, "first")

    async def passing(seconds: float) -> None:
        clock.move(seconds)

    async def electing() -> None:
        await first.acquire()
        began = clock.now
        leases.down = True
        monkeypatch.setattr("lakestream_operator.adapters.lease.asyncio.sleep", passing)
        with pytest.raises(LeadershipLostError, match="out of reach"):
            await first.hold()
        assert clock.now - began < timedelta(seconds=15)
        assert not first.leading

    run(electing())
