"""Whether executors have too much to do, or soon will, and how much they should read.

Behind is who will be, by the time `D + 2·P` that new executors have worked on a batch, beyond `B₀`:

    lag′ = lag + max(0, 1 - C/λ′)·(D + 2·P) > B₀

`C` are the records per second that the executors can do that there are, `λ′` the larger of `λ` and the last 90 s. What
is older is to be read within `K` seconds, the shorter of catch-up time and lag goal, beside what arrives meanwhile:

    R = λ′·(1 + (lag′ - B₀)/K)

After a leap `L` stands for `B₀`: what comes while executors start is a backlog by then. Without one, executors that
have time to spare work off by themselves what noise or a pause leaves: `B₀` is `maxLag` for them, if that is more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakestream_api import Scaling
from lakestream_operator.autoscaler.demand import FULL, high_lag, usual_lag, utilization
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.inputs import BatchLimits
from lakestream_operator.autoscaler.state import BatchModel

HIGH = 1.14
"""Times the target utilization, `FULL` at most, from which on there have to be more executors: noise stays below it."""
LEAP_HIGH = 1.3
"""Utilization by a load that has leapt up: it takes more than a few batches that are larger than others. What else is
not established shows in the lag, if it lasts."""

EASY = 0.95
"""Times the target utilization, below which executors have time to spare."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Of a load on the executors that there are."""

    busy: float
    """Share of the time that they are, by `λ`; above 1 they cannot keep up."""
    lately: float
    """The same by `λ′`."""
    behind: bool
    high: float
    """`busy` from which on there have to be more."""
    usual: float
    """The same of a load that is established."""
    reading: float
    """`R`, in records per second."""


def pressure_of(
    spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, *, executors: int, delay: float, rising: bool
) -> Pressure:
    """The pressure of a load.

    Args:
        spec: `U`, `K` and the lag goal.
        limits: the trigger.
        model: what batches cost.
        load: what arrives.
        executors: that there are.
        delay: `D + 2·P`, in seconds.
        rising: executors have been added just now: if they are too few, that need not show once more.
    """
    rate, recent = load.rate.now, max(load.rate.now, load.rate.recent)
    busy, lately = (utilization(spec, limits, model, load, rate=one, executors=executors) for one in (rate, recent))
    lag = load.lag + max(0.0, 1 - 1 / lately) * delay if lately > 1 else load.lag
    most = high_lag(spec, limits, model)
    if load.rate.leap is None and lately < EASY * spec.target_utilization:
        most = max(most, spec.max_lag.total_seconds())
    behind = lag > most
    over = max(0.0, lag - (most if load.rate.leap is None else usual_lag(limits, model)))
    catch_up = min(spec.catch_up, spec.max_lag).total_seconds()
    usual = min(HIGH * spec.target_utilization, FULL)
    unsure = math.inf if load.rate.leap is None else LEAP_HIGH
    return Pressure(
        busy=busy,
        lately=lately,
        behind=behind,
        high=usual if load.rate.established or rising else unsure,
        usual=usual,
        reading=(max(recent, load.rate.latest) if behind else rate) * (1 + over / catch_up),
    )
