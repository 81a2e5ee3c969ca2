"""Whether the last step up was of any use."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_operator.autoscaler.estimate import Load, parallelism
from lakestream_operator.autoscaler.observations import ScalingWindow
from lakestream_operator.autoscaler.state import BatchModel, Block, LimitReason, Sample, ScalingCondition, ScalingState

BATCHES = 8
"""That have run with the step before it is judged; their median is good to a few percent of noisy batches."""
LEAST_PROMISE = 0.2
"""A step that should have made batches less than this much faster cannot be told from noise."""
LEAST_GAIN = 0.1
"""Of what was promised."""
PAUSE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class NoGain:
    """The step is taken back: without it batches are no slower."""

    executors: int
    condition: ScalingCondition


def judge(state: ScalingState, window: ScalingWindow, load: Load, now: datetime) -> tuple[ScalingState, NoGain | None]:
    """Compare batches that ran with the last step up with those before it, as if all had been of one size."""
    step = state.step
    if step is None or step.judged:
        return state, None
    telling = [sample for sample in state.samples if sample.alone or sample.chained]
    after = [sample for sample in telling if sample.at > step.at and sample.executors == step.after]
    if sum(sample.batches for sample in after) < BATCHES:
        return state, None
    state = replace(state, step=replace(step, judged=True))
    before = [sample for sample in telling if sample.at <= step.at and sample.executors == step.before]
    if not before:
        return state, None
    slots = step.before * window.limits.cores, step.after * window.limits.cores
    promise = 1 - statistics.median(
        _seconds(step.model, sample, slots[1], load) / _seconds(step.model, sample, slots[0], load) for sample in after
    )
    # Both through the same model, so that it does not matter if it is a little high or low.
    then, since = (
        statistics.median(sample.busy / _seconds(step.model, sample, slots[0], load) for sample in samples)
        for samples in (before, after)
    )
    gain = 1 - since / then
    if promise < LEAST_PROMISE or gain >= LEAST_GAIN * promise:
        return state, None
    condition = ScalingCondition(
        LimitReason.NO_GAIN,
        f"from {step.before} to {step.after} executors batches should have become {promise:.0%} faster and became "
        f"{max(gain, 0.0):.0%}; no step up for {PAUSE.total_seconds() / 60:.0f} min, or until much more arrives",
    )
    block = Block(now + PAUSE, condition, step.before, load.rate)
    return replace(state, block=block), NoGain(step.before, condition)


def _seconds(model: BatchModel, sample: Sample, slots: int, load: Load) -> float:
    seconds = model.alone_seconds if sample.alone else model.seconds
    tasks = model.tasks(parallelism(sample.records, slots, load.open_shards), sample.groups)
    return seconds(sample.records, tasks, sample.reading)
