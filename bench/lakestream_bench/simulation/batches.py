"""Batches at work, and what a run comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

SERVICES_SHARE = 0.25
"""Of the slots, that compaction gets while batches have tasks too: the weights of Spark's pools."""
DONE = 1e-6
"""Seconds, or core-seconds, that are left over by rounding."""


@dataclass(slots=True)
class Batch:
    """A batch between its plan and its commit."""

    number: int
    records: float
    bytes: float
    base: float
    """When the first of its records arrived."""
    since: float
    """From when on it covers arrival time: nothing that came since the batch before is left, or there is too much."""
    horizon: float
    caught_up: bool
    shards: int
    executors: int
    share: float
    """Of its records, that of the fullest shard."""
    prepare_began: float
    tasks: int = 1
    """That fetch it."""
    prepare_seconds: float = 0.0
    prepare_work: float = 0.0
    """Core-seconds that it takes."""
    prepare_ran: float = 0.0
    """Core-seconds that tasks ran, which may have waited."""
    redo: float = 0.0
    """Core-seconds of fetching that were lost with executors, and have to be spent again."""


@dataclass(slots=True)
class Job:
    """A stage at work: first what is fixed, then tasks wait for Kinesis's first answer, then so many core-seconds."""

    batch: Batch
    began: float
    fixed: float
    work: float
    tasks: float
    """That run at once, if there are slots."""
    waits: float = 0.0
    """Seconds."""
    speed: float = 1.0
    """Core-seconds of work done per second and slot; below 1 tasks wait for more of Kinesis's answers."""
    whole: float = 0.0
    """What `work` was at the beginning."""
    ran: float = 0.0
    """Core-seconds that its tasks ran."""

    def __post_init__(self) -> None:
        self.whole = self.work

    @property
    def is_done(self) -> bool:
        return self.fixed <= DONE and self.work <= DONE


@dataclass(slots=True)
class Meter:
    """What a run comes to."""

    late: float = 0.0
    """Seconds in which the oldest record not yet in the table was older than the lag goal."""
    busy: float = 0.0
    """Core-seconds worked."""
    pipeline: float = 0.0
    """Seconds in which a batch was at work."""
    records: float = 0.0
    """Committed."""
    targets: list[tuple[float, int]] = field(default_factory=list)
    """When other executors were asked for, and how many."""
    trace: list[tuple[float, float, int, int]] = field(default_factory=list)
    """At each commit: time, lag just before it, executors placed, target."""
