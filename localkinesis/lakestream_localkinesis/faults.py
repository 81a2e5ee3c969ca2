"""Faults that tests switch on. Which request meets which fault is decided here; `application` acts it out."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from lakestream_localkinesis.core.stream import REMEMBERED_MS
from lakestream_localkinesis.errors import SettingsError


class FaultKind(StrEnum):
    """What goes wrong."""

    LATENCY = "latency"
    """The answer is held back; the request takes effect at once."""
    INTERNAL_FAILURE = "internal_failure"
    """500 InternalFailure, without effect."""
    THROTTLE = "throttle"
    """ProvisionedThroughputExceededException without effect; in PutRecords, of single records. Of operations
    that tell of streams LimitExceededException."""
    DROP = "drop"
    """The connection closes after the request took effect: the client cannot know that it did."""
    DROP_BEFORE = "drop_before"
    """The connection closes before the request took effect: the client cannot tell this from DROP."""
    EMPTY_PAGE = "empty_page"
    """GetRecords answers without records, and does not move."""
    STALE = "stale"
    """ListShards answers with the shards as they were a while ago, and so do the pages that follow."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and the requests that it befalls."""

    kind: FaultKind
    operations: frozenset[str] = frozenset()
    """Operation names; empty means every operation that the kind applies to."""
    times: int | None = None
    """How many requests (of THROTTLE in PutRecords: records) are befallen; None means until the fault is cleared."""
    probability: float = 1.0
    """The share of matching requests (or records) that are befallen."""
    latency_ms: int = 0
    stale_ms: int = 0
    """How long ago, by the server's clock."""

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise SettingsError(f"probability: {self.probability} is not above 0 and at most 1")
        if self.times is not None and self.times < 1:
            raise SettingsError(f"times: {self.times} is below 1")
        if (self.kind is FaultKind.LATENCY) != (self.latency_ms > 0):
            raise SettingsError(f"latency_ms: {self.latency_ms} does not go with a fault of kind {self.kind}")
        if (self.kind is FaultKind.STALE) != (self.stale_ms > 0):
            raise SettingsError(f"stale_ms: {self.stale_ms} does not go with a fault of kind {self.kind}")
        if self.stale_ms > REMEMBERED_MS:
            raise SettingsError(f"stale_ms: {self.stale_ms} is above {REMEMBERED_MS}: no more is remembered")


class FaultPlan:
    """The faults that are switched on; the seed makes what befalls whom reproducible."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._faults: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        """Switch a fault on."""
        self._faults.append((fault, 0))

    def clear(self) -> None:
        """Switch all faults off."""
        self._faults.clear()

    def strikes(self, kind: FaultKind, operation: str) -> Fault | None:
        """The fault of this kind that befalls this request, which counts as one of its times."""
        for place, (fault, struck) in enumerate(self._faults):
            if fault.kind is not kind or (fault.operations and operation not in fault.operations):
                continue
            if fault.times is not None and struck >= fault.times:
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            self._faults[place] = (fault, struck + 1)
            return fault
        return None

    def any(self) -> bool:
        """Whether there is any fault: without one, a request pays nothing for them."""
        return bool(self._faults)
