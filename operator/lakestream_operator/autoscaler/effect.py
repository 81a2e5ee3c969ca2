"""Whether the last step up was of any use."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_operator.autoscaler.estimate import Load, parallelism
from lakestream_operator.autoscaler.observations import ScalingWindow
from lakestream_operator.autoscaler.state import Block, LimitReason, ScalingCondition, ScalingState

BATCHES = 5
"""That have run with the step before it is judged; their median is good to a few percent of noisy batches."""
LEAST_PROMISE = 0.1
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
    """Compare batches that ran with the last step up with what the model says they would have taken without."""
    step = state.step
    if step is None or step.judged:
        return state, None
    after = [
        sample
        for sample in state.samples
        if sample.at > step.at and sample.executors == step.after and (sample.alone or sample.chained)
    ]
    if sum(sample.batches for sample in after) < BATCHES:
        return state, None
    state = replace(state, step=replace(step, judged=True))
    cores = window.limits.cores
    promised: list[float] = []
    gained: list[float] = []
    for sample in after:
        shards = load.open_shards
        seconds = step.model.alone_seconds if sample.alone else step.model.seconds
        slots = parallelism(sample.records, step.before * cores, shards)
        more = parallelism(sample.records, step.after * cores, shards)
        before = seconds(sample.records, slots, sample.reading)
        with_step = seconds(sample.records, more, sample.reading)
        promised.append((before - with_step) / before)
        gained.append((before - sample.busy) / before)
    promise, gain = statistics.median(promised), statistics.median(gained)
    if promise < LEAST_PROMISE or gain >= LEAST_GAIN * promise:
        return state, None
    condition = ScalingCondition(
        LimitReason.NO_GAIN,
        f"from {step.before} to {step.after} executors batches should have become {promise:.0%} faster and became "
        f"{max(gain, 0.0):.0%}; no step up for {PAUSE.total_seconds() / 60:.0f} min, or until much more arrives",
    )
    block = Block(now + PAUSE, condition, step.before, load.rate)
    return replace(state, block=block), NoGain(step.before, condition)
