"""Settings of the client, the reader and the planner. Picklable: executors get them with their task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from lakestream.errors import SettingsError
from lakestream.model import Span

StartingPosition: TypeAlias = Literal["TRIM_HORIZON", "LATEST"] | datetime
"""Where a new checkpoint starts; a time stands for AT_TIMESTAMP."""

LEAST_RETENTION = timedelta(hours=24)
"""The shortest that Kinesis allows. A longer one may be lowered to it at any time; what is older is gone at once."""


@dataclass(frozen=True, slots=True)
class KinesisSettings:
    """One stream, and how patiently it is read."""

    stream: str
    region: str
    endpoint: str | None = None
    """URL of the endpoint; None: AWS_ENDPOINT_URL_KINESIS, AWS_ENDPOINT_URL, else that of the region."""
    account: str | None = None
    """Whose the stream is, which is asked for by its ARN then; None: the account of who asks."""
    role_arn: str | None = None
    """A role that the stream is read by; None: as who this is."""
    consumer_arn: str | None = None
    """`consumerArn`: of the consumer of enhanced fan-out that records are pushed to; None: they are asked for."""
    skip_losses: bool = False
    """`onDataLoss: skip`: go on behind records that were trimmed before they were read, instead of failing."""
    retention: timedelta = LEAST_RETENTION
    """Of the stream when the batch was planned: readers of records that are nearly as old, or as the least retention is
    long, see whether they are overtaken."""
    patience: float = 120.0
    """Seconds for which throttling, server errors, or a tip that comes before a range's end are waited out."""
    timeout: float = 10.0
    """Seconds without a byte after which a call counts as lost; a full page of 10 MB takes about 1 s."""
    connections: int = 32
    """Connections kept open, so also the number of calls that run at once."""

    def __post_init__(self) -> None:
        if not self.stream or not self.region:
            raise SettingsError(f"stream and region must not be empty, got {self.stream!r} and {self.region!r}")
        if self.connections < 1:
            raise SettingsError(f"connections must be at least 1, got {self.connections}")


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """How batches are cut."""

    starting_position: StartingPosition
    """Without meaning where `span` is given."""
    span: Span | None = None
    """Plan what the stream had in this span, which has passed by now, and no more; None: whatever comes."""
    interval: timedelta = timedelta(seconds=10)
    """`trigger.interval`: how often there should be a batch."""
    max_records: int = 500_000
    """`trigger.maxRecordsPerBatch`: user records that a batch aims at, after KPL de-aggregation."""
    max_bytes: int = 256 * 1024 * 1024
    """`trigger.maxBytesPerBatch`: bytes of record data that a batch aims at."""
    pushed: bool = False
    """Whether batches are read by subscriptions, as a consumer of its own has them."""
    skip_losses: bool = False
    """`onDataLoss: skip`, as in KinesisSettings."""
    drop_misplaced: bool = True
    """`misplacedRecords: drop`: leave out user records of KPL aggregates that belong to another shard."""
    settle: timedelta = timedelta(milliseconds=100)
    """Records younger than this are left to the next batch: a time too near to now could be in the future of the server
    that answers, whose clock is not that of the others to the millisecond. Exactness does not depend on it."""
    refresh: timedelta = timedelta(seconds=60)
    """How often ListShards and DescribeStreamSummary are asked without another reason."""
    heartbeat: timedelta = timedelta(minutes=10)
    """How often an idle stream's cursors are written down, so that a restart does not take idling for data loss."""
    threads: int = 32
    """Shards probed at once."""
    records_per_task: int = 10_000
    """A task is worth starting for about this many records; small batches make fewer tasks, and fewer files."""

    def __post_init__(self) -> None:
        for name in ("max_records", "max_bytes", "threads", "records_per_task"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        start = self.starting_position
        if isinstance(start, datetime):
            if start.utcoffset() != timedelta(0):
                raise SettingsError(f"the starting timestamp must be in UTC, got {start!r}")
        elif start not in ("TRIM_HORIZON", "LATEST"):
            raise SettingsError(f"not a starting position: {start!r}")
