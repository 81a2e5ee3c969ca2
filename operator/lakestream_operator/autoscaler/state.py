"""What the autoscaler remembers from one evaluation to the next. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from pydantic import AwareDatetime

from lakestream_operator.autoscaler.remembered import Remembered

_MOST_KEPT = 128 * 1024
"""Characters: Kubernetes lets the annotations of an object have 256 KiB together."""
_LEAST_ALIKE = 0.01
"""Of a record that comes now: what any record costs at least, however few bytes it has."""
_ADVISED_EVERY = timedelta(minutes=10)
"""Between two events of a dry run: what nobody acts on is called for at each evaluation, now more and now less."""


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
    EXECUTORS_MISSING = "ExecutorsMissing"
    """Executors do not come although no pod of theirs waits for a node."""
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
class BatchModel:
    """What batches cost."""

    fixed: float
    """`a`: seconds that no executor makes shorter."""
    fetch: float
    """`w₁`: core-seconds per record of the size that comes now."""
    write: float
    """`w₂`: the same."""
    fetch_base: float = 0.0
    """`c₁`: core-seconds of fetching that a batch takes however small it is."""
    write_base: float = 0.0
    """`c₂`: the same of writing."""
    services: float = 0.0
    """`w₃`: core-seconds of compaction and the like per record of the size that comes now, in the mean."""
    longest_stage: float = 0.5
    """`s`: share of a batch that is its longer stage."""
    is_sure: bool = False
    """Whether it is made of several batches that agree, as Spark itself has measured them."""
    size: float = 0.0
    """Bytes of a record that comes now; 0: not known."""
    byte_share: float = 0.5
    """Of what such a record costs, what goes by its bytes."""

    @property
    def base(self) -> float:
        """Core-seconds that a batch takes however small it is."""
        return self.fetch_base + self.write_base

    def fetching(self, records: float) -> float:
        """Core-seconds of fetching a batch of so many records of the size that comes now."""
        return self.fetch_base + self.fetch * records

    def writing(self, records: float) -> float:
        """The same of writing it."""
        return self.write_base + self.write * records

    def times(self, factor: float) -> BatchModel:
        """Batches that take so many times the core-seconds."""
        return replace(
            self,
            fetch=factor * self.fetch,
            write=factor * self.write,
            services=factor * self.services,
            fetch_base=factor * self.fetch_base,
            write_base=factor * self.write_base,
        )

    def alike(self, records: float, size: float) -> float:
        """How many records of the size that comes now cost as much as so many with so many bytes in all."""
        if self.size <= 0:
            return records
        return max((1 - self.byte_share) * records + self.byte_share * size / self.size, _LEAST_ALIKE * records)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some batches that ran on the same executors, or a rest without any; sums, where nothing else is said."""

    at: AwareDatetime
    """When the last of them was committed; of a rest, when the driver last looked in vain."""
    batches: int = 0
    """0: it is a rest, or a batch that is not committed yet."""
    records: float = 0.0
    bytes: float = 0.0
    span: float = 0.0
    """Seconds of arrival time; 0: not known."""
    fetch_work: float = 0.0
    """Core-seconds."""
    write_work: float = 0.0
    services: float = 0.0
    """Core-seconds of compaction and the like meanwhile."""
    measured: bool = False
    """Whether Spark has measured these; or else they are what all slots could have done in that time."""
    fixed: float | None = None
    """Seconds of a batch that no task accounts for; None: others ran beside it, which hides that."""
    stages: float = 0.0
    """Seconds, from the begin of planning to the commit, without rests."""
    longest: float = 0.0
    """Seconds of the longer stage."""
    executors: int = 0
    reading: float = 0.0
    """Seconds in which Kinesis gives as much as the shard that gave most to each consumer of it."""
    shard_bound: bool = False
    """Whether a part of what fetching took may be waiting for it, whatever the executors."""
    groups: int = 0
    """File groups that a batch was written to, at most; 0: no bound."""

    @property
    def is_rest(self) -> bool:
        """Whether it is time in which nothing came."""
        return self.records == 0


@dataclass(frozen=True, slots=True)
class Step:
    """A step up whose effect is being watched."""

    at: AwareDatetime
    before: int
    """Executors."""
    after: int
    rate: float
    """Records per second that arrived when it was taken."""


@dataclass(frozen=True, slots=True)
class Block:
    """No step up until then, since the last one was of no use or there was no room."""

    until: AwareDatetime
    condition: ScalingCondition
    executors: int
    """At most so many meanwhile."""
    rate: float | None
    """Records per second that arrived when it began: with much more the block ends early. None: it does not."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the load alone would have called for at one evaluation."""

    at: AwareDatetime
    executors: float
    """In fractions: one of three that is not needed any more is no fall by a third."""


@dataclass(frozen=True, slots=True)
class ScalingState(Remembered):
    """Everything that a decision depends on besides spec, window and time."""

    target: int | None = None
    """The executors asked for last; None: nothing was decided yet."""
    changed_at: AwareDatetime | None = None
    """When `target` was last changed."""
    raised_at: AwareDatetime | None = None
    """When it was last raised, as long as its executors are waited for."""
    grown_at: AwareDatetime | None = None
    """When it was raised first since it was last lowered."""
    raised_rate: float | None = None
    """Records per second that arrived when it was last raised; None: it was lowered since, or the load was not why."""
    evaluated_at: AwareDatetime | None = None
    last_batch: int | None = None
    """Number of the newest batch taken in."""
    last_finished_at: AwareDatetime | None = None
    samples: tuple[Sample, ...] = ()
    """Of the last 25 minutes, newest last."""
    model: BatchModel | None = None
    start_delays: tuple[float, ...] = ()
    """Seconds from asking for executors to having them, the last five."""
    recommendations: tuple[Recommendation, ...] = ()
    """Of the last `scaleDownAfter`, where they changed."""
    explained_at: AwareDatetime | None = None
    """When there was last more to do than executors for it, by the model."""
    unexplained: float = 0.0
    """Share by which more is needed than the model says, as it was at `unexplained_at`."""
    unexplained_at: AwareDatetime | None = None
    starved: int = 0
    """Times in a row that the cluster had no room."""
    step: Step | None = None
    block: Block | None = None
    explanation: str = ""
    """What was said at the last evaluation."""
    wanted: int | None = None
    advised: int | None = None
    """What was told last that would have been asked for, but for a dry run."""
    advised_at: AwareDatetime | None = None
    """When that was told."""
    condition: ScalingCondition | None = None
    at_maximum_at: AwareDatetime | None = None
    """When more than `maxExecutors` were called for last."""
    forbidden: bool = False
    """Whether it was told last that something else than a lack of nodes forbids executors."""
    missing_since: AwareDatetime | None = None
    """Since when the driver has had fewer executors than it asked Spark for, while none of their pods waits."""

    def to_json(self) -> str:
        """For the annotation that keeps it: without the older samples, and then with the target alone, if that is too
        long for one."""
        text = Remembered.to_json(self)
        if len(text) <= _MOST_KEPT:
            return text
        if not self.samples:
            return ScalingState(target=self.target).to_json()
        return replace(self, samples=self.samples[len(self.samples) // 2 + 1 :]).to_json()

    def advising(self, executors: int | None, now: datetime) -> Self:
        """The state once so many would be asked for, but for a dry run (None: no others than there are); where that is
        to be told, `advised_at` is another time."""
        quiet = self.advised_at is not None and timedelta() <= now - self.advised_at < _ADVISED_EVERY
        if quiet or executors == self.advised:
            return self
        return replace(self, advised=executors, advised_at=self.advised_at if executors is None else now)

    def unchanged_for(self, span: timedelta, now: datetime) -> bool:
        """Whether the last step is longer ago than that."""
        return self.changed_at is None or now - self.changed_at > span
