"""The one place where the autoscaler is asked: what it is told of a writer, and what is kept of its answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from lakestream_api import Scaling
from lakestream_operator.autoscaler import (
    LimitReason,
    ScaleDecision,
    ScalingCondition,
    ScalingState,
    decide_scale,
    window_of,
)
from lakestream_operator.model import Emit, WriterSeen
from lakestream_operator.render import Plan

MISSING_AFTER = timedelta(minutes=3)
"""Executors without a pod that waits have mostly come within seconds, and a minute if their JVM is slow to start."""
KEPT_FOR = timedelta(minutes=2)
"""What the autoscaler remembers is written down with each new target, and this often: a restarted operator has lost
no more than that, and drivers publish the batches of as long. To write it after each evaluation would cost a request
for each report of a driver."""


def scale(
    spec: Scaling, plan: Plan, consumers: int, seen: WriterSeen, remembered: ScalingState | None, now: datetime
) -> ScaleDecision:
    """Decide on the executors of one writer.

    Args:
        spec: `spec.scaling` of the LakeStream as it is.
        plan: what the writer runs, be it an older spec: cores and batches are as that says.
        consumers: writers that ask for the stream's records as this one does; 0: they are pushed to it.
        seen: the writer's objects.
        remembered: the state of the last decision of this process; none after its start.
        now: the time.
    """
    state = ScalingState.from_json(seen.scaling_state) if remembered is None else remembered
    if _is_bidden(spec, state):
        state = replace(state, evaluated_at=None)
    window = window_of(
        plan.stream.spec, seen.report, seen.pending_since, consumers=consumers, pending_for=seen.pending_for
    )
    return decide_scale(spec, window, state, now)


def asking(plans: Iterable[Plan]) -> int:
    """How many of these writers share what shards give: those that have no consumer of their own."""
    return sum(plan.writer.consumer_arn is None for plan in plans)


def kept_away(decision: ScaleDecision, seen: WriterSeen, quota: str, now: datetime) -> ScaleDecision:
    """The decision where something else than a lack of nodes keeps executors away, which is told once.

    Args:
        decision: without that.
        seen: the writer's objects.
        quota: which one leaves no room for them; empty: none.
        now: the time.
    """
    told, since = decision.state.forbidden, None if quota else _missing_since(decision.state, seen, now)
    condition = ScalingCondition(LimitReason.RESOURCE_STARVED, quota) if quota else _missing(seen, since, now)
    state = replace(decision.state, forbidden=condition is not None, missing_since=since)
    if condition is None:
        return replace(decision, state=state)
    event = () if told else (Emit(condition.reason.value, condition.message, warning=True),)
    return replace(decision, condition=condition, events=(*decision.events, *event), state=state)


def _missing_since(state: ScalingState, seen: WriterSeen, now: datetime) -> datetime | None:
    report, control, pod = seen.own_report, seen.control, seen.driver_pod
    if report is None or control is None or pod is None or pod.ended or seen.pending_since is not None:
        return None
    # What the driver has not asked Spark for yet cannot be there.
    short = report.executors.registered < min(report.executors.target, control.executors or 0)
    return min(state.missing_since or now, now) if short else None


def _missing(seen: WriterSeen, since: datetime | None, now: datetime) -> ScalingCondition | None:
    """Pods that the API server refuses leave no trace but in the driver's log."""
    report = seen.own_report
    if report is None or since is None or now - since < MISSING_AFTER:
        return None
    return ScalingCondition(
        LimitReason.EXECUTORS_MISSING,
        f"{report.executors.registered} of {report.executors.target} executors have come in 3 minutes and more, and"
        " none waits for a node: their pods are refused (by a LimitRange, a quota that asks for limits, an admission"
        " policy, for a field of kubernetes.executor.template), end at once, or cannot reach the driver. The log of pod"
        f" {report.pod} says which",
    )


def is_to_be_kept(decision: ScaleDecision, seen: WriterSeen) -> bool:
    """Whether what the autoscaler remembers has to be written down now."""
    decided, (kept, told) = decision.state.evaluated_at, _kept(seen.scaling_state)
    changed = decision.target != (seen.control.executors if seen.control else None) or decision.state.forbidden != told
    return changed or kept is None or (decided is not None and abs(decided - kept) > KEPT_FOR)


@lru_cache(maxsize=1024)
def _kept(written: str | None) -> tuple[datetime | None, bool]:
    """When what is written down was decided, and whether it was told what forbids executors: asked in each cycle, of
    the same text for minutes."""
    state = ScalingState.from_json(written)
    return state.evaluated_at, state.forbidden


def _is_bidden(scaling: Scaling, state: ScalingState) -> bool:
    """Whether a person asks for something else than the last target: that waits for no evaluation."""
    if state.target is None:
        return False
    least, most = (scaling.executors or scaling.min_executors), (scaling.executors or scaling.max_executors)
    return not least <= state.target <= most
