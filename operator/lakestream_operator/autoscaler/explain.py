"""Decisions in a line each: what was seen, what is wanted, what limits it."""

from __future__ import annotations

from datetime import timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.state import ScalingCondition


def count(executors: int) -> str:
    """`1 executor`, `3 executors`."""
    return f"{executors:,} executor{'s' if executors != 1 else ''}"


def seen(load: Load, *, behind: bool, executors: int, rate: float, busy: float) -> str:
    """What is to be said of the load."""
    text = f"{rate:,.0f} records/s keep {count(executors)} {busy:.0%} busy, lag {load.lag:.0f} s"
    return f"{text}, {load.backlog:,.0f} records behind" if behind and load.backlog >= 1 else text


def decision(what: str, spec: Scaling, current: int, target: int, wanted: int, limit: ScalingCondition | None) -> str:
    """What was decided on what was seen."""
    if target == current:
        text = f"stays at {count(current)}: {what}"
        if wanted != current:
            text += f"; {wanted} would do" if wanted < current else f"; {wanted} wanted"
    else:
        text = step(current, target, what)
        if target != wanted:
            text += f"; {wanted} wanted"
    return f"{text}; limited by {limit.reason}: {limit.message}" if limit is not None else text


def step(current: int, target: int, why: str) -> str:
    """A change."""
    return f"{current} → {target} executors: {why}"


def bounds(spec: Scaling, current: int, target: int) -> str:
    """Why a target that the spec does not allow (any more) is left."""
    return step(current, target, f"minExecutors is {spec.min_executors}, maxExecutors {spec.max_executors}")


def ago(span: timedelta) -> str:
    """A time span, roughly."""
    seconds = span.total_seconds()
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
