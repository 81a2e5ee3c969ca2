"""Drivers in memory: what their pods and reports would say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from lakestream_api import Control, DriverReport, DriverState, ExecutorsReport, Resharding, TableService
from lakestream_api.report import KEPT_BATCHES, Failure
from lakestream_operator.testing.documents import batch_of, worked


class Behaviour(Enum):
    """What becomes of a driver."""

    WELL = "commits batches"
    HANGS = "says nothing"
    ALONE = "commits nothing, since no node takes its executors"
    CRASHES = "ends with status 1"
    REFUSES = "ends with status 2"
    DEAF = "commits batches and does not listen"
    UNSCHEDULABLE = "its pod never runs"
    AWAITS_STORAGE = "has begun anew, and waits for its storage"
    AWAITS_RIGHT = "has begun anew, and waits for a right"


_EXITS = {
    Behaviour.CRASHES: (1, "the stream cannot be reached"),
    Behaviour.REFUSES: (2, "spec.schema: no such type"),
}

_AWAITED = {
    Behaviour.AWAITS_STORAGE: (6, "the storage of the checkpoint does not answer: http://s3:9000"),
    Behaviour.AWAITS_RIGHT: (3, "the storage denies access: s3a://lake/orders: 403"),
}


_LIFE = timedelta(minutes=10)
"""After so long without a batch a driver says nothing more."""


@dataclass(slots=True)
class KinesisStream:
    """The stream that drivers read, resharded as soon as one asks for it."""

    open_shards: int = 4
    records_per_second: int = 100
    core_seconds: float = 0.0
    """That its records take for each batch; 0: drivers do not tell."""
    refusal: str = ""
    """Why it refuses to be resharded; empty: it does not."""
    updating: bool = False
    """Whether it takes its time."""
    resharded: list[int] = field(default_factory=list)
    """What it was asked for."""

    def answer(self, ordered: int) -> Resharding:
        """What a driver tells of an order."""
        if not self.refusal and not self.updating and ordered != self.open_shards:
            self.resharded.append(ordered)
            self.open_shards = ordered
        return Resharding(ordered=ordered, open_shards=self.open_shards, updating=self.updating, problem=self.refusal)


@dataclass(slots=True)
class Driver:
    """A driver's process."""

    stream: str
    writer: str
    pod_uid: str
    fingerprint: str
    """Of the document that it was given."""
    started_at: datetime
    behaviour: Behaviour
    kinesis: KinesisStream = field(default_factory=KinesisStream)
    ahead: timedelta = timedelta()
    """How far the clock of its node is, of all others."""
    table_services: tuple[TableService, ...] = ()
    """What it tells of its table."""
    largest_file: int = 0
    """Bytes, as it tells."""
    filtered: float = 0.0
    """Share of the records that its filter leaves out."""
    poison: float = 0.0
    """Share of its records that are unusable."""
    room: int = 1000
    """Executors that a quota lets be."""
    terminated: bool = False
    """Whether it got SIGTERM."""
    exit: tuple[int, str] | None = None
    report: DriverReport | None = None
    _due: datetime | None = field(default=None)
    _said: tuple[DriverReport | None, str] = (None, "")

    @property
    def said(self) -> str:
        """The report as it is written; empty before the first."""
        if self._said[0] is not self.report:
            self._said = self.report, self.report.published().model_dump_json() if self.report else ""
        return self._said[1]

    def step(self, now: datetime, control: Control | None) -> None:
        """Live until a time."""
        if self.exit is not None or self.behaviour is Behaviour.HANGS:
            return
        if self.report is None:
            self.report = self._first(now)
            self._due = now + timedelta(seconds=10)
            return
        if (awaited := _AWAITED.get(self.behaviour)) is not None:
            self.report = self._first(now).model_copy(update={"epoch": None, "failure": Failure.of(*awaited)})
            return
        drain = control.drain if control and self.behaviour is not Behaviour.DEAF else None
        if self.terminated or drain is not None:
            self.report = self.report.model_copy(
                update={"state": DriverState.DRAINED, "drain": drain, "updated_at": now + self.ahead}
            )
            self.exit = (0, "")
            return
        if self.behaviour is Behaviour.ALONE:
            self._wait_for_executors(now)
        elif self._due is not None and now >= self._due:
            self._end_batch(now, control)

    def _wait_for_executors(self, now: datetime) -> None:
        assert self.report is not None  # step
        since = self.report.batches[-1].finished_at - self.ahead if self.report.batches else self.started_at
        if now - since < _LIFE:
            executors = self.report.executors.model_copy(update={"registered": 0})
            self.report = self.report.model_copy(update={"updated_at": now + self.ahead, "executors": executors})

    def _first(self, now: datetime) -> DriverReport:
        return DriverReport(
            stream=self.stream,
            writer=self.writer,
            pod=f"{self.stream}-{self.writer}-driver",
            pod_uid=self.pod_uid,
            epoch=1,
            started_at=self.started_at + self.ahead,
            updated_at=now + self.ahead,
            state=DriverState.STARTING,
            executors=ExecutorsReport(target=1, registered=0),
        )

    def _end_batch(self, now: datetime, control: Control | None) -> None:
        assert self.report is not None  # step
        if self.behaviour in _EXITS:
            self.exit = _EXITS[self.behaviour]
            return
        target = control.executors if control and control.executors else 1
        records, open_shards = 10 * self.kinesis.records_per_second, self.kinesis.open_shards
        number = self.report.batches[-1].batch + 1 if self.report.batches else 0
        batch = batch_of(number, now, records=records, open_shards=open_shards)
        left_out = round(self.filtered * records)
        kept = round(self.poison * (records - left_out))
        batch = batch.model_copy(update={"quarantined": kept, "filtered": left_out})
        if self.kinesis.core_seconds:
            batch = worked(batch, self.kinesis.core_seconds, self.report.executors.registered or 1)
        batch = batch.model_copy(update={"finished_at": now + self.ahead})
        batches = (*self.report.batches, batch)[-KEPT_BATCHES:]
        ordered = control.shards if control else None
        self.report = self.report.model_copy(
            update={
                "state": DriverState.RUNNING,
                "failure": None,
                "updated_at": now + self.ahead,
                "batches": batches,
                "executors": ExecutorsReport(target=target, registered=min(target, self.room)),
                "table_services": self.table_services,
                "largest_file": self.largest_file,
                "quarantine_reason": "not JSON" if self.poison else "",
                "resharding": self.kinesis.answer(ordered) if ordered else None,
            }
        )
        self._due = now + timedelta(seconds=10)
