"""How many executors a writer should have, and shards a stream: pure. The simulator runs the first of these too."""

from lakestream_operator.autoscaler.inputs import BatchLimits, ScalingWindow, window_of
from lakestream_operator.autoscaler.policy import ScaleDecision, decide_scale
from lakestream_operator.autoscaler.shard_policy import (
    ShardDecision,
    ShardState,
    StreamObservation,
    decide_shards,
    observe_stream,
)
from lakestream_operator.autoscaler.state import LimitReason, ScalingCondition, ScalingState

__all__ = [
    "BatchLimits",
    "LimitReason",
    "ScaleDecision",
    "ScalingCondition",
    "ScalingState",
    "ScalingWindow",
    "ShardDecision",
    "ShardState",
    "StreamObservation",
    "decide_scale",
    "decide_shards",
    "observe_stream",
    "window_of",
]
