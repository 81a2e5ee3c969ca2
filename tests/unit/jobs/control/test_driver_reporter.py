"""What a driver writes of itself, and when; without threads."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from lakestream.control.driver import DriverReporter
from lakestream.testing.logs import ManualClock
from lakestream.testing.progress import progress_with
from lakestream_api import Progress, StageSeconds
from lakestream_api.report import DriverReport, DriverState, ExecutorsReport, FetchedBatch


def progress(batch: int) -> Progress:
    return progress_with(
        batch=batch,
        epoch=4,
        records=100,
        bytes=25_000,
        rows_written=100,
        seconds=StageSeconds(plan=0.5, fetch=1.0, write=2.0, commit=0.25),
        trigger_interval=timedelta(seconds=10),
    )


@dataclass
class Desk:
    """A reporter, its clock, and where its reports go."""

    clock: ManualClock = field(default_factory=ManualClock)
    reports: list[DriverReport] = field(default_factory=list)
    error: Exception | None = None
    lives: bool = True
    seen: dict[str, Any] = field(default_factory=dict)
    set_by: timedelta = timedelta(0)
    """What the machine's clock was set forward by, or back."""

    def __post_init__(self) -> None:
        first = DriverReport(
            stream="orders",
            writer="hudi",
            pod="orders-hudi-driver",
            pod_uid="1234",
            started_at=self.clock(),
            updated_at=self.clock(),
            state=DriverState.STARTING,
            executors=ExecutorsReport(target=0, registered=0),
        )
        self.reporter = DriverReporter(
            first,
            self.write,
            look=lambda: self.seen,
            lives=lambda: self.lives,
            now=lambda: self.clock() + self.set_by,
            monotonic=self.clock.monotonic,
        )

    def write(self, report: str) -> None:
        if self.error is not None:
            raise self.error
        self.reports.append(DriverReport.model_validate_json(report))

    def tick(self, seconds: float) -> None:
        self.clock.time += timedelta(seconds=seconds)
        self.reporter.tick()


def test_what_has_not_changed_is_written_every_half_minute_only() -> None:
    desk = Desk()
    for _ in range(60):
        desk.tick(1)
    assert [(r.updated_at - desk.reports[0].updated_at).total_seconds() for r in desk.reports] == [0, 30]


@pytest.mark.parametrize("hours", [-6, 6])
def test_a_driver_that_lives_is_heard_of_whatever_its_clock_is_set_to(hours: int) -> None:
    """In a batch that takes long nothing else changes: it would be restarted, as one that hangs."""
    desk = Desk()
    desk.tick(1)
    desk.set_by = timedelta(hours=hours)
    for _ in range(60):
        desk.tick(1)
    assert len(desk.reports) == 3


def test_a_driver_without_life_falls_silent_until_something_happens() -> None:
    desk = Desk(lives=False)
    for _ in range(60):
        desk.tick(1)
    assert len(desk.reports) == 1
    desk.reporter.publish(progress(0))
    desk.tick(1)
    assert [batch.batch for batch in desk.reports[-1].batches] == [0]


def test_each_change_is_written_and_batches_add_up() -> None:
    desk = Desk()
    desk.tick(1)
    desk.reporter.update(state=DriverState.RUNNING, epoch=4)
    desk.tick(1)
    desk.reporter.publish(progress(0))
    desk.reporter.publish(progress(1))
    desk.tick(1)
    desk.seen["executors"] = ExecutorsReport(target=3, registered=1)
    desk.tick(1)
    desk.tick(1)
    assert [r.state for r in desk.reports] == ["STARTING", "RUNNING", "RUNNING", "RUNNING"]
    assert [b.batch for b in desk.reports[-1].batches] == [0, 1]
    assert desk.reports[-1].executors.target == 3
    assert desk.reports[-1].updated_at == desk.clock() - timedelta(seconds=1)


def test_a_report_that_could_not_be_written_is_tried_again_with_what_came_since(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk(error=ConnectionError("no API server"))
    desk.reporter.publish(progress(0))
    with caplog.at_level(logging.INFO):
        desk.tick(1)
        desk.tick(1)
        desk.reporter.publish(progress(1))
        desk.error = None
        desk.tick(1)
    assert [b.batch for b in desk.reports[-1].batches] == [0, 1]
    assert caplog.text.count("could not be written") == 1, "said once, for as long as it lasts"
    assert "is written again" in caplog.text


def test_once_silenced_nothing_is_written() -> None:
    desk = Desk()
    desk.reporter.be_silent()
    desk.reporter.update(state=DriverState.FAILED)
    desk.tick(1)
    assert desk.reports == []


def test_the_last_word_is_written_before_the_end() -> None:
    desk = Desk()
    with desk.reporter:
        desk.reporter.update(state=DriverState.RUNNING)
        desk.reporter.update(state=DriverState.DRAINED)
    assert desk.reports[-1].state is DriverState.DRAINED


def test_a_fetched_batch_is_told_with_the_next_report() -> None:
    desk = Desk()
    desk.reporter.tick()
    fetched = FetchedBatch(batch=3, fetched_at=desk.clock(), records=7, bytes=700, slice_seconds=10.0)
    desk.reporter.fetched(fetched)
    desk.reporter.tick()
    assert [report.fetched for report in desk.reports] == [None, fetched]
