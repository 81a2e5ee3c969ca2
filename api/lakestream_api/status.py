"""What the operator says of a LakeStream: its status. One program writes it, everyone may read it."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from lakestream_api.base import WireModel
from lakestream_api.quantities import Duration


class Phase(StrEnum):
    """The state of a LakeStream in a word; its conditions say more."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"


class ConditionType(StrEnum):
    """What is said to be so, or not."""

    READY = "Ready"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    STALLED = "Stalled"
    SPEC_VALID = "SpecValid"
    SCALING_LIMITED = "ScalingLimited"
    QUARANTINING = "Quarantining"
    UP_TO_DATE = "UpToDate"


class ConditionStatus(StrEnum):
    """Whether it is so."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(WireModel):
    """One thing that is so, or is not, as Kubernetes says such things."""

    type: ConditionType
    """`Ready`: every writer's driver runs and commits batches. `Progressing`: something is being
    started, changed or stopped. `Degraded`: a writer does not do what it should. `Stalled`: part
    of the spec is not carried out before somebody changes it. `SpecValid`: the spec can be carried
    out. `ScalingLimited`: more executors are called for than there can be, or
    than would help. `Quarantining`: more of the records than `spec.quarantine.warnFraction` are
    kept in quarantine. `UpToDate`: all run as they would be started now, by image and by
    the operator's settings."""

    status: ConditionStatus
    """Whether it is so."""

    reason: str = Field(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=1024)
    """Why, in one word for programs."""

    message: str = Field(max_length=32768)
    """Why, in a sentence that also says what to do."""

    last_transition_time: AwareDatetime
    """When `status` last changed."""

    observed_generation: int | None = Field(default=None, ge=0)
    """`metadata.generation` of the spec that this is about."""


class ExecutorsStatus(WireModel):
    """Executors, and how many there should be."""

    now: int = Field(default=0, ge=0)
    """Executors that can be given tasks."""

    target: int = Field(default=0, ge=0)
    """Executors that there should be."""


class QuarantineStatus(WireModel):
    """What a writer kept in quarantine over the last five minutes of its batches."""

    records: int = Field(default=0, ge=0)
    """Records that did not parse, or that the output cannot take."""

    share: float = Field(default=0.0, ge=0, le=1)
    """Their share of the records that were read, but for those that `spec.filter` left out."""

    reason: str = ""
    """Why one of the last ones is there."""


class WriterStatus(WireModel):
    """One writer's application."""

    name: str
    """Name of the writer."""

    application: str | None = None
    """State of its SparkApplication, in the Spark Operator's words; none without one."""

    driver_pod: str | None = None
    """Name of the driver's pod."""

    image: str = ""
    """Image that driver and executors run."""

    epoch: int | None = Field(default=None, ge=0)
    """Number of the driver's start."""

    last_batch: int | None = Field(default=None, ge=0)
    """Number of the last batch that was committed."""

    last_batch_at: AwareDatetime | None = None
    """When that was."""

    lag_seconds: float | None = Field(default=None, ge=0)
    """Age of the oldest record that is not in the table, over the slowest shard, as the last batch left it; 0 where
    that had read all there was. Where it took longer than two trigger intervals, at least the time since it was
    planned. That of a driver which is stopped, starts, or reads nothing grows."""

    read_until: AwareDatetime | None = None
    """Up to when all that had arrived was read, when that was last known. It outlives drivers."""

    records_per_second: float | None = Field(default=None, ge=0)
    """Records read per second over the last batches."""

    filtered_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the records of the last five minutes' batches that `spec.filter` left out. `1`: it took none."""

    quarantine: QuarantineStatus = QuarantineStatus()
    """Records that are in quarantine and not in the table."""

    executors: ExecutorsStatus = ExecutorsStatus()
    """Its executors."""

    restarts: int = Field(default=0, ge=0)
    """Failures in a row: starts again from 0 after a good run."""

    retry_at: AwareDatetime | None = None
    """When the driver is started again after a failure."""

    message: str = ""
    """What is wrong or being done, in a sentence; empty when all is well."""

    scaling: str = ""
    """The last decision on executors in a line: what was seen, what is wanted, what limits it."""


class LakeStreamStatus(WireModel):
    """What was last seen of a LakeStream. Written by the operator."""

    observed_generation: int | None = Field(default=None, ge=-1)
    """`metadata.generation` of the spec that the rest of the status is about; -1: no operator has seen any yet."""

    phase: Phase = Phase.PENDING
    """The state in a word. `Pending`: not begun. `Starting`: drivers are being started. `Running`:
    all commit batches. `Updating`: a change is being made. `Degraded`: one writer at least is not
    well, another is. `Failed`: none is. `Suspending`, `Suspended`: as `spec.suspend` asks.
    `Deleting`: drivers end their batch."""

    lag: Duration | None = None
    """Lag of the slowest writer; `0s` at the tip."""

    records_per_second: int | None = Field(default=None, ge=0)
    """Records read per second, all writers together."""

    quarantined: str = ""
    """Share of records in quarantine, of the writer that keeps most of them there, as in `1.5%`."""

    executors: ExecutorsStatus = ExecutorsStatus()
    """Executors of all writers together."""

    shards: str = ""
    """The last decision on the stream's shards in a line; empty without `source.kinesis.shards`."""

    writers: tuple[WriterStatus, ...] = Field(
        default=(), json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    )
    """Each writer by itself."""

    conditions: tuple[Condition, ...] = Field(
        default=(), json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    )
    """What is so: `kubectl wait --for=condition=Ready lakestream/NAME` waits for one."""
