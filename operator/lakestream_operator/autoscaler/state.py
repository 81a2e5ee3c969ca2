"""What the autoscaler remembers from one evaluation to the next, and its JSON. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError


class LimitReason(StrEnum):
    """Why more executors would not help, or cannot be had; reasons of the condition `ScalingLimited`."""

    TRIGGER_TOO_SHORT = "TriggerTooShort"
    """What a batch costs apart from its records takes up the trigger interval."""
    BATCH_TOO_SMALL = "BatchTooSmall"
    """`trigger.maxRecordsPerBatch` or `maxBytesPerBatch` bounds what can be read per second."""
    SHARD_LIMITED = "ShardLimited"
    """Kinesis's read limit of a shard, or the number of shards."""
    RESOURCE_STARVED = "ResourceStarved"
    """The cluster has no room for the executors asked for."""
    AT_MAXIMUM = "AtMaximum"
    """`scaling.maxExecutors`."""
    NO_GAIN = "NoGain"
    """The last step up made batches hardly faster."""


@dataclass(frozen=True, slots=True)
class ScalingCondition:
    """`ScalingLimited`: what stands in the way of the executors that the load asks for."""

    reason: LimitReason
    message: str
    """A sentence for people: what limits, and what would help."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The mean of the batches of one evaluation that ran on the same task slots."""

    at: datetime
    """When the last of them was committed."""
    batches: int
    records: float
    """Per batch."""
    bytes: float
    """Per batch."""
    seconds: float
    """Per batch, in which the pipeline was busy with it."""
    executors: int
    slots: int
    """Tasks that could run at once on work that there was."""
    span: float
    """Seconds of arrival time that all of them covered; 0: not known."""
    shard_bytes: float = 0.0
    """Per batch, of the shard that gave most."""
    shard_bound: bool = False
    """Whether fetching took as long as that shard may be read at: says nothing about executors."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step up whose effect is being watched."""

    at: datetime
    before: int
    """Executors."""
    after: int
    fixed: float
    """`a` of the model when it was taken, in seconds."""
    per_record: float
    """`w` of the model when it was taken, in core-seconds."""
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """No step up until then, since the last one was of no use or there was no room."""

    until: datetime
    condition: ScalingCondition
    executors: int
    """At most so many meanwhile."""
    rate: float
    """Records per second that arrived when it began: with much more the block ends early."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the load alone would have called for at one evaluation."""

    at: datetime
    executors: int


@dataclass(frozen=True, slots=True)
class ScalingState:
    """Everything that a decision depends on besides spec, window and time."""

    target: int | None = None
    """The executors asked for last; None: nothing was decided yet."""
    changed_at: datetime | None = None
    """When `target` was last changed."""
    raised_at: datetime | None = None
    """When it was last raised."""
    raised_from: int = 0
    """Executors registered when it was last raised."""
    evaluated_at: datetime | None = None
    last_batch: int | None = None
    """Number of the newest batch taken in."""
    last_finished_at: datetime | None = None
    samples: tuple[Sample, ...] = ()
    """Of the last half hour, newest last."""
    fixed: float = 0.0
    """`a`: seconds of a batch that no executor makes shorter, from when it could last be told apart."""
    per_record: float | None = None
    """`w`: core-seconds per record."""
    start_delays: tuple[float, ...] = ()
    """Seconds from asking for executors to having them, the last five."""
    votes: tuple[bool, ...] = ()
    """Whether each of the last three evaluations called for more."""
    recommendations: tuple[Recommendation, ...] = ()
    """Of the last ten minutes."""
    step: Step | None = None
    block: Block | None = None
    explanation: str = ""
    """What was said at the last evaluation."""
    wanted: int | None = None
    advised: int | None = None
    """What would have been asked for, but for a dry run."""
    condition: ScalingCondition | None = None

    def to_json(self) -> str:
        """For the annotation that keeps it; below 24 KiB."""
        return _ADAPTER.dump_json(self, exclude_defaults=True).decode()

    @classmethod
    def from_json(cls, text: str | None) -> ScalingState:
        """What `to_json` wrote. A new state if there is none or it is nonsense: the autoscaler learns again."""
        if text is None:
            return cls()
        try:
            return _ADAPTER.validate_json(text)
        except ValidationError:
            return cls()


_ADAPTER = TypeAdapter(ScalingState)
