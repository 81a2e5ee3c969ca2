"""The phases of a run, as a person follows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    """The phases, in their order; the values are the keys of `seconds` in result.json."""

    CHECKS = "checks"
    SERVERS = "servers"
    START = "start"
    WARM_UP = "warm_up"
    LOAD = "load"
    DRAIN = "drain"
    STOP = "stop"
    INSPECTION = "inspection"


TITLES: Mapping[Phase, str] = {
    Phase.CHECKS: "Java, jars",
    Phase.SERVERS: "Kinesis",
    Phase.START: "applications",
    Phase.WARM_UP: "warm-up",
    Phase.LOAD: "load",
    Phase.DRAIN: "drain",
    Phase.STOP: "stop",
    Phase.INSPECTION: "audit, queries",
}


@dataclass(frozen=True)
class Step:
    """A phase that has begun."""

    phase: Phase
    began: float
    """Seconds on a monotonic clock."""
    ended: float | None = None
    detail: str = ""
    expected: float | None = None
    """Seconds that it will take, where that is known beforehand."""
    failed: bool = False

    def seconds(self, now: float) -> float:
        return (now if self.ended is None else self.ended) - self.began


@dataclass(frozen=True)
class Timeline:
    """The phases so far; at most the last one is under way."""

    steps: tuple[Step, ...] = ()

    def begin(self, phase: Phase, now: float, *, detail: str = "", expected: float | None = None) -> Timeline:
        """End what is under way, and begin the next phase."""
        return Timeline((*self.end(now).steps, Step(phase, now, detail=detail, expected=expected)))

    def end(self, now: float) -> Timeline:
        return self._with_last(ended=now) if self.steps and self.steps[-1].ended is None else self

    def fail(self, now: float) -> Timeline:
        """End what is under way, in vain."""
        return self._with_last(ended=now, failed=True)

    def describe(self, detail: str) -> Timeline:
        """Say what the last phase is doing, or what came of it."""
        return self._with_last(detail=detail)

    def seconds(self) -> dict[str, float]:
        """Seconds of each phase that has ended."""
        return {step.phase.value: round(step.ended - step.began, 3) for step in self.steps if step.ended is not None}

    def _with_last(self, **changed: Any) -> Timeline:
        return Timeline((*self.steps[:-1], replace(self.steps[-1], **changed)))
