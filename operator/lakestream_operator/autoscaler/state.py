"""What the autoscaler remembers from one evaluation to the next. No I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakestream_operator.autoscaler.remembered import Remembered


class LimitReason(StrEnum):
    """Why more executors would not help, or cannot be had; reasons of the condition `ScalingLimited`."""

    TRIGGER_TOO_SHORT = "TriggerTooShort"
    """What a batch costs apart from its records takes up the trigger interval."""
    BATCH_TOO_SMALL = "BatchTooSmall"
    """`trigger.maxRecordsPerBatch` or `maxBytesPerBatch` bounds what can be read per second."""
    SHARD_LIMITED = "ShardLimited"
    """Kinesis's read limit of a shard, or the number of shards."""
    FILE_GROUP_LIMITED = "FileGroupLimited"
    """A batch touches few files of the table, and each is written by one task."""
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


_LEAST_FOR_RECORDS = 0.1
"""Share of a batch's time that is left for its records, whatever is fixed; no number of executors makes up for more."""
_LEAST_FOR_WRITING = 0.5
"""The same beside reading: where a shard takes longer than this, it is the shard that limits."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """How many run at once."""

    all: float
    """As many as there are slots for."""
    writing: float


@dataclass(frozen=True, slots=True)
class BatchModel:
    """What a batch of `n` records on `p` task slots costs, of which a shard's read limit takes `r` seconds.

    Where a batch is written to `g` file groups, no more than `g` tasks write it.
    """

    fixed: float
    """`a`: seconds that no executor makes shorter."""
    fetch: float
    """`w₁`: core-seconds per record."""
    write: float
    """`w₂`: core-seconds per record."""
    longest_stage: float = 0.5
    """`s`: share of a batch that runs alone which is its longer stage."""
    fixed_share: float | None = None
    """Of a batch that runs alone, `a`; None: it was never measured, and is assumed."""

    @property
    def is_bound(self) -> bool:
        """Whether no batch has run alone yet: all is taken for writing."""
        return self.fetch == 0

    def tasks(self, slots: float, groups: int) -> Tasks:
        """Of a batch; with no file groups, all slots write. What is a bound only does not tell writing from reading."""
        return Tasks(slots, min(slots, groups) if groups and not self.is_bound else slots)

    def alone_seconds(self, records: float, tasks: Tasks, reading: float) -> float:
        """`a + F + w₂·n/min(p, g)`: of a batch beside which no other is at work."""
        return self.fixed + self._reading(records, tasks, reading) + self.write * records / tasks.writing

    def seconds(self, records: float, tasks: Tasks, reading: float) -> float:
        """`T`: from one batch to the next when the pipeline never rests."""
        work = self._reading(records, tasks, reading) + self.write * records / tasks.all
        stage = self.longest_stage * self.alone_seconds(records, tasks, reading)
        return max(work, self.write * records / tasks.writing, stage)

    def slots(self, records: float, seconds: float, reading: float) -> float:
        """Task slots on which `T` is so many seconds, if there are file groups enough."""
        if records <= 0:
            return 0.0
        budget = min(seconds, max(seconds / self.longest_stage - self.fixed, _LEAST_FOR_RECORDS * seconds))
        writing = max(budget - reading, _LEAST_FOR_WRITING * budget)
        return max((self.fetch + self.write) * records / budget, self.write * records / writing)

    def useful(self, groups: int) -> float:
        """`g·(w₁ + w₂)/w₂`: task slots beyond which nothing gets faster."""
        return groups * (self.fetch + self.write) / self.write if groups and not self.is_bound else math.inf

    def _reading(self, records: float, tasks: Tasks, reading: float) -> float:
        # Tasks hold their slots while they wait for Kinesis.
        return max(self.fetch * records / tasks.all, reading)


@dataclass(frozen=True, slots=True)
class Sample:
    """The mean of the batches of one evaluation that ran on the same executors; or a rest, without any."""

    at: datetime
    """When the last of them was committed; of a rest, when the driver last looked in vain."""
    batches: int
    records: float
    """Per batch, as are all below; 0: it is a rest."""
    bytes: float
    prepare: float
    """Seconds."""
    finish: float
    """Seconds."""
    busy: float
    """Seconds that it took up at most: its stages, or the time since the commit before."""
    alone: bool
    """Whether no other batch was at work meanwhile."""
    chained: bool
    """Whether the pipeline did not rest before it."""
    late: float
    """Age of the oldest record when the last of them was committed, in seconds."""
    executors: int
    slots: int
    """Tasks that ran at once."""
    span: float
    """Seconds of arrival time that all of them covered; 0: not known."""
    reading: float = 0.0
    """Seconds that the shard that gave most took to be read, as fast as Kinesis allows."""
    shard_bound: bool = False
    """Whether that is what fetching took, whatever the executors."""
    groups: int = 0
    """File groups written to; 0: no bound."""

    @property
    def is_rest(self) -> bool:
        """Whether it is time in which nothing came."""
        return self.records == 0


@dataclass(frozen=True, slots=True)
class Step:
    """A step up whose effect is being watched."""

    at: datetime
    before: int
    """Executors."""
    after: int
    model: BatchModel
    """As it was when the step was taken."""
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """No step up until then, since the last one was of no use or there was no room."""

    until: datetime
    condition: ScalingCondition
    executors: int
    """At most so many meanwhile."""
    rate: float | None
    """Records per second that arrived when it began: with much more the block ends early. None: it does not."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the load alone would have called for at one evaluation."""

    at: datetime
    executors: int


@dataclass(frozen=True, slots=True)
class ScalingState(Remembered):
    """Everything that a decision depends on besides spec, window and time."""

    target: int | None = None
    """The executors asked for last; None: nothing was decided yet."""
    changed_at: datetime | None = None
    """When `target` was last changed."""
    raised_at: datetime | None = None
    """When it was last raised."""
    evaluated_at: datetime | None = None
    last_batch: int | None = None
    """Number of the newest batch taken in."""
    last_finished_at: datetime | None = None
    samples: tuple[Sample, ...] = ()
    """Of the last two hours, newest last; few of them are older than the window."""
    model: BatchModel | None = None
    start_delays: tuple[float, ...] = ()
    """Seconds from asking for executors to having them, the last five."""
    votes: tuple[bool, ...] = ()
    """Whether each of the last three evaluations called for more."""
    recommendations: tuple[Recommendation, ...] = ()
    """Of the last `scaleDownAfter`."""
    starved: int = 0
    """Times in a row that the cluster had no room."""
    step: Step | None = None
    block: Block | None = None
    explanation: str = ""
    """What was said at the last evaluation."""
    wanted: int | None = None
    advised: int | None = None
    """What would have been asked for, but for a dry run."""
    condition: ScalingCondition | None = None
