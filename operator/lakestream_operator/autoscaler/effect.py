"""Whether the last step up was of any use."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lakestream_operator.autoscaler.estimate import Load, cost
from lakestream_operator.autoscaler.state import Block, LimitReason, Sample, ScalingCondition, ScalingState

BATCHES = 8
"""That have run with the step before it is judged; their median is good to a few percent of noisy batches."""
BOUND_BATCHES = 2
"""That may have waited for a shard, from which on a step is not judged."""
COMPLETE = 0.95
"""Of the executors of a step have come when it is complete: of many, one comes minutes later."""
LEAST_PROMISE = 0.2
"""A step that should make batches less than this much faster is not judged: it could not be told from noise."""
LEAST_GAIN = 0.1
"""Of what was promised."""
PAUSE = timedelta(minutes=30)


def promise(before: int, after: int) -> float:
    """By what share batches should become faster by a step."""
    return 1 - before / after


def judge(state: ScalingState, load: Load, now: datetime) -> tuple[ScalingState, Block | None]:
    """Compare what records cost with the last step up and before it. Blocked: the step is to be taken back, since
    without it batches are no slower.

    Twice the slots are of no use if a record takes its task twice the time: the executors share what they had before.
    """
    step = state.step
    if step is None:
        return state, None
    after = [sample for sample in state.samples if sample.at > step.at and sample.executors >= COMPLETE * step.after]
    if sum(sample.batches for sample in after if sample.shard_bound) >= BOUND_BATCHES:
        # What waits for a shard tells nothing of executors, and takes more core-seconds with more slots.
        return replace(state, step=None), None
    after = [sample for sample in after if _tells(sample)]
    if sum(sample.batches for sample in after) < BATCHES:
        return state, None
    state = replace(state, step=None)
    promised = promise(step.before, step.after)
    before = [sample for sample in state.samples if sample.executors == step.before and _tells(sample)]
    if not before or state.model is None:
        return state, None
    # Through one model, so that records of another size do not matter.
    usual = cost(before, state.model)
    if usual <= 0:
        # Batches took no more than what they take however small they are.
        return state, None
    gain = 1 - (1 - promised) * cost(after, state.model) / usual
    if gain >= LEAST_GAIN * promised:
        return state, None
    condition = ScalingCondition(
        LimitReason.NO_GAIN,
        f"from {step.before} to {step.after} executors batches should have become {promised:.0%} faster and became "
        f"{max(gain, 0.0):.0%}; no step up for {PAUSE.total_seconds() / 60:.0f} min, or until much more arrives",
    )
    block = Block(now + PAUSE, condition, step.before, load.rate.mean)
    return replace(state, block=block), block


def _tells(sample: Sample) -> bool:
    """Whether its batches tell what records cost."""
    return sample.batches > 0 and not sample.shard_bound
