"""How many executors a writer should have: pure decisions, shared by the operator and the simulator."""

from lakestream_operator.autoscaler.observations import (
    BatchLimits,
    BatchObservation,
    ExecutorsObservation,
    ScalingWindow,
)
from lakestream_operator.autoscaler.policy import ScaleDecision, ScalingEvent, decide_scale
from lakestream_operator.autoscaler.report import window_of
from lakestream_operator.autoscaler.shards import ShardDecision, ShardState, StreamObservation, decide_shards
from lakestream_operator.autoscaler.state import LimitReason, ScalingCondition, ScalingState

__all__ = [
    "BatchLimits",
    "BatchObservation",
    "ExecutorsObservation",
    "LimitReason",
    "ScaleDecision",
    "ScalingCondition",
    "ScalingEvent",
    "ScalingState",
    "ScalingWindow",
    "ShardDecision",
    "ShardState",
    "StreamObservation",
    "decide_scale",
    "decide_shards",
    "window_of",
]
