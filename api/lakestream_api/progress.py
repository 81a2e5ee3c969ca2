"""What a driver publishes after each batch; the autoscaler's only view of the data plane."""

from datetime import timedelta
from typing import Self

from pydantic import AwareDatetime, Field, model_validator

from lakestream_api.base import WireModel
from lakestream_api.quantities import Duration


class StageSeconds(WireModel):
    """Seconds that each stage of the batch took, waiting for the trigger excluded."""

    plan: float = Field(ge=0)
    """Finding the ranges and writing the plan down."""

    fetch: float = Field(ge=0)
    """Reading and parsing the records."""

    write: float = Field(ge=0)
    """Making the rows visible in the sink."""

    commit: float = Field(ge=0)
    """Writing the commit down."""

    table_services: float = Field(default=0.0, ge=0)
    """Compaction and cleaning that the batch had to wait for."""

    pause: float = Field(default=0.0, ge=0)
    """Waiting on purpose, since compaction fails: fewer and larger batches leave fewer log files. No
    work, and nothing that executors would shorten."""

    @property
    def prepare(self) -> float:
        """Seconds that may pass beside the batch before."""
        return self.plan + self.fetch

    @property
    def finish(self) -> float:
        """Seconds in which no other batch is finished."""
        return self.write + self.commit + self.table_services

    @property
    def total(self) -> float:
        """Seconds of work in the batch: `T` of the autoscaler's model."""
        return self.prepare + self.finish


class CoreSeconds(WireModel):
    """How long tasks of the batch ran, all of them added up, as Spark measures it: what the batch costs on
    any number of executors."""

    fetch: float = Field(ge=0)
    """Reading and parsing the records."""

    write: float = Field(ge=0)
    """Making the rows visible in the sink."""

    services: float = Field(default=0.0, ge=0)
    """Compaction, clustering, cleaning and archiving since the batch before. Not the batch's own."""

    @property
    def total(self) -> float:
        """Of the batch itself."""
        return self.fetch + self.write


class TableService(WireModel):
    """Work on a table beside its batches, since the driver's start: compaction, clustering, cleaning, archiving."""

    name: str
    """`compaction`, `clustering`, `cleaning`, `archiving` or `catalog`."""

    failed: int = Field(default=0, ge=0)
    """Runs that failed."""

    failing: int = Field(default=0, ge=0)
    """Runs in a row that failed, up to the last one; 0: the last one succeeded."""

    failing_since: AwareDatetime | None = None
    """When the first of these ended."""

    error: str = ""
    """Of the last run, in a line; empty: it succeeded."""

    seconds: float = Field(default=0.0, ge=0)
    """Time that the last completed run took."""

    behind_commits: int = Field(default=0, ge=0)
    """Commits since the last completed run began: what waits to be compacted, cleaned or archived."""


class ShardProgress(WireModel):
    """How far one shard is after the batch."""

    shard_id: str
    """Kinesis's id of the shard."""

    last_arrival: AwareDatetime | None = None
    """Arrival time of the last record committed; none before the first."""

    tip_reached: bool
    """Whether nothing was left unread in the shard when the batch was planned."""

    lag_seconds: float = Field(ge=0)
    """Age of the oldest record that is not in the table; 0 at the tip."""

    records: int = Field(ge=0)
    """Records of this shard in the batch."""

    bytes: int = Field(ge=0)
    """Bytes of record data of this shard in the batch."""

    kinesis_records: int | None = Field(default=None, ge=0)
    """Records of this shard in the batch as Kinesis counts them; none: as many as `records`."""

    kinesis_bytes: int | None = Field(default=None, ge=0)
    """Bytes of this shard in the batch as Kinesis counts them; none: as many as `bytes`."""

    @property
    def stored_records(self) -> int:
        return self.records if self.kinesis_records is None else self.kinesis_records

    @property
    def stored_bytes(self) -> int:
        return self.bytes if self.kinesis_bytes is None else self.kinesis_bytes


class LossProgress(WireModel):
    """Records of a shard that were skipped: they were, or may have been, trimmed before they were read. How many is
    unknown, for Kinesis does not count what it trims."""

    shard_id: str
    """Kinesis's id of the shard."""

    since: AwareDatetime
    """They arrived at or after this time…"""

    until: AwareDatetime
    """…and before this one."""


class Freshness(WireModel):
    """Seconds from a record's arrival in Kinesis to its being visible in the output."""

    p50_seconds: float = Field(ge=0)
    """Half of the batch's records were visible sooner."""

    p99_seconds: float = Field(ge=0)
    """99 of 100 of the batch's records were visible sooner."""


class Progress(WireModel):
    """One batch of one writer, published when it is committed."""

    stream: str
    """Name of the LakeStream."""

    writer: str
    """Name of the writer."""

    batch: int = Field(ge=0)
    """Number of the batch; counts up without gaps."""

    epoch: int = Field(ge=0)
    """Number of the driver's start; a lower one than seen before is a driver that was replaced."""

    finished_at: AwareDatetime
    """When the batch was committed, by the driver's clock."""

    records: int = Field(ge=0)
    """Records read."""

    bytes: int = Field(ge=0)
    """Bytes of record data read."""

    kinesis_records: int | None = Field(default=None, ge=0)
    """Records read as Kinesis counts them: an aggregate of the Kinesis Producer Library is one. None:
    the driver is of a release that does not tell."""

    kinesis_bytes: int | None = Field(default=None, ge=0)
    """Bytes read as Kinesis counts them: with partition keys, an aggregate as a whole. None: likewise."""

    quarantined: int = Field(ge=0)
    """Records that did not parse, or that the output cannot take."""

    misplaced: int = Field(default=0, ge=0)
    """Records of aggregates that were left out, since they belong to other shards; not among `records`."""

    filtered: int = Field(default=0, ge=0)
    """Records that `spec.filter` left out; among `records`."""

    losses: tuple[LossProgress, ...] = ()
    """What was skipped, since `onDataLoss: skip` allows it."""

    rows_written: int = Field(ge=0)
    """Rows that went to the sink, deletes included."""

    seconds: StageSeconds
    """Seconds of each stage."""

    core_seconds: CoreSeconds | None = None
    """What the batch cost. None: the driver is of a release that does not tell, or Spark did not."""

    trigger_interval: Duration = Field(gt=timedelta(0))
    """The interval in force: `I` of the autoscaler's model."""

    executors: int = Field(ge=1)
    """Executors that ran the batch."""

    cores: int = Field(ge=1)
    """Cores of each executor."""

    slice_seconds: float | None = Field(default=None, ge=0)
    """Seconds of arrival time that the batch covers; the same for all shards, since they are all cut
    at one time. None if nothing was read."""

    horizon: AwareDatetime | None = None
    """Arrival time up to which the batch read all shards: what it read arrived between the horizon of
    the batch before and this one. None: the driver is of a release that does not tell."""

    horizon_age_seconds: float | None = Field(default=None, ge=0)
    """Seconds from the horizon to the commit, both by Kinesis's clock: the driver's may differ. None: likewise."""

    shards: tuple[ShardProgress, ...]
    """Every shard that is being read."""

    lag_seconds: float = Field(ge=0)
    """Lag of the stream: the maximum over its shards, 0 without any."""

    freshness: Freshness | None = None
    """Freshness of the batch; none when it had no records."""

    caught_up: bool
    """Whether every shard's tip was reached."""

    file_groups: int | None = Field(default=None, ge=0)
    """File groups of a Hudi table that the batch wrote to: partitions that it touched × buckets, mostly.
    Each is written by one task. None: another sink, or nothing was written."""

    remembered_deletes: int = Field(default=0, ge=0)
    """Deletes that the sink remembers, so that no older version of their key that comes later is written."""

    largest_file: int = Field(default=0, ge=0)
    """Bytes of the largest file written since the driver's start that later batches add to: of a bucket of a
    Hudi table. 0: none was written, or the table has no buckets."""

    table_services: tuple[TableService, ...] = ()
    """How the work on the table beside its batches goes; none where there is no such work."""

    quarantine_reason: str = ""
    """Why one of the records that were last kept in quarantine is there; empty: none was since the driver's start,
    or nothing is known."""

    @model_validator(mode="after")
    def _lag_is_that_of_the_slowest_shard(self) -> Self:
        slowest = max((shard.lag_seconds for shard in self.shards), default=0.0)
        if self.lag_seconds != slowest:
            raise ValueError(f"lagSeconds is {self.lag_seconds}, the slowest shard has {slowest}")
        return self
