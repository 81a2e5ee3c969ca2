"""Asking the writer's driver for work on its table: what it would come to, and the request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakestream.errors import RequestError, SettingsError
from lakestream.log import (
    Back,
    ObstoreLogStore,
    ServiceRequest,
    Work,
    ask_for_service,
    cancel_service,
    newest_service,
)
from lakestream.storage import StoreSettings
from lakestream.table.files import Files
from lakestream.table.report import HudiReport, JsonReport
from lakestream_api import rounded_size


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request would come to."""

    told: str
    is_needed: bool = True
    """Whether there is anything to do."""


def plan_of(work: Work, report: HudiReport | JsonReport, instant: str = "", merged_below: int | None = None) -> Plan:
    """What the work comes to on a table as it is. Pure.

    Args:
        work: what is to be done.
        report: the table.
        instant: of the savepoint that is to be deleted.
        merged_below: bytes below which clustering merges a file, by which the report was made; None: nobody knows.

    Raises:
        SettingsError: the table has no such work, or no such savepoint.
    """
    if isinstance(report, JsonReport):
        raise SettingsError(f"{report.path} has JSON files, which need no {work}")
    slices = report.slices
    match work:
        case Work.COMPACTION:
            return _compaction(report)
        case Work.CLUSTERING:
            return _clustering(report, merged_below)
        case Work.CLEANING:
            if not slices.replaced.count:
                return Plan("no files have been replaced", is_needed=False)
            return Plan(
                f"cleaning deletes those of {_told(slices.replaced, 'replaced')} that no query of the last "
                "hudi.cleaning.retainHours and no savepoint needs"
            )
        case Work.SAVEPOINT:
            return Plan(
                f"a savepoint keeps the table as of its newest commit: {_told(slices.base, 'base')} and "
                f"{_told(slices.waiting, 'log')} are not cleaned, and no later commit is archived, until it is deleted"
            )
        case Work.SAVEPOINT_DELETION:
            return _deletion(report, instant)
        case Work.RESTORE:
            raise AssertionError("told by plan_restore")


def _compaction(report: HudiReport) -> Plan:
    if report.type != "MERGE_ON_READ":
        raise SettingsError(f"{report.path} is copy on write: it has no log files to compact")
    if not (waiting := report.slices.waiting).count:
        return Plan("no log files wait to be compacted", is_needed=False)
    return Plan(f"compaction merges {_told(waiting, 'log')} with {_told(report.slices.base, 'base')}")


def _clustering(report: HudiReport, merged_below: int | None) -> Plan:
    if report.layout.startswith("bucket:"):
        raise SettingsError(
            f"{report.path} is kept by key, in as many files as it has buckets ({report.layout}): clustering is for "
            "tables of inserts"
        )
    slices = report.slices
    if merged_below is None:
        if slices.base.count <= slices.partitions:
            return Plan("no partition has several files", is_needed=False)
        below = "below half of hudi.clustering.targetFileSize"
        return Plan(f"clustering merges those of {_told(slices.base, 'base')} that are {below}")
    limit = f"{rounded_size(merged_below)}, half of hudi.clustering.targetFileSize"
    if not slices.mergeable.count:
        return Plan(f"no partition has several files below {limit}", is_needed=False)
    return Plan(f"clustering merges {_told(slices.mergeable, 'base')} below {limit}")


def _deletion(report: HudiReport, instant: str) -> Plan:
    for found in report.savepoints:
        if found.instant == instant:
            comment = f" ({found.comment})" if found.comment else ""
            return Plan(f"the savepoint {found.instant}{comment} is deleted; what it alone kept can be cleaned then")
    names = ", ".join(one.instant for one in report.savepoints) or "none"
    raise SettingsError(f"no savepoint {instant} of the table at {report.path}; there are: {names}")


def _told(files: Files, kind: str) -> str:
    return f"{files.count:,} {kind} files ({rounded_size(files.bytes)})"


def ask(
    log: StoreSettings, work: Work, now: datetime, *, instant: str = "", comment: str = "", back: Back | None = None
) -> ServiceRequest:
    """Put a request into the checkpoint, for the writer's driver.

    Args:
        log: the writer's part of the checkpoint.
        work: what is to be done.
        now: the time.
        instant: of the savepoint that is to be deleted, or the commit that is to be the newest.
        comment: kept with a savepoint.
        back: of a restore.

    Raises:
        RequestError: another request has not been carried out yet.
        CorruptLogError, StorageError, StorageUnavailableError, OutcomeUnknownError: of the checkpoint.
    """
    store = ObstoreLogStore.at(log)
    newest = newest_service(store)
    if newest is not None and newest[1] is None:
        last = newest[0]
        raise RequestError(
            f"request {last.number} ({last.work}) waits for the writer's driver; one is carried out at a time. If no "
            "driver runs, start one, or take it back: `lakestream table cancel`"
        )
    request = ServiceRequest(1 if newest is None else newest[0].number + 1, now, work, instant, comment, back)
    if not ask_for_service(store, request):
        raise RequestError("somebody else has asked for work just now: `lakestream table` tells what")
    return request


def cancel(log: StoreSettings, now: datetime) -> ServiceRequest:
    """Take back the request that waits.

    Args:
        log: the writer's part of the checkpoint.
        now: the time.

    Raises:
        RequestError: none waits; or the writer's driver has begun it.
        CorruptLogError, StorageError, StorageUnavailableError, OutcomeUnknownError: of the checkpoint.
    """
    store = ObstoreLogStore.at(log)
    newest = newest_service(store)
    if newest is None or newest[1] is not None:
        raise RequestError("nothing to cancel: no request waits for the writer's driver")
    request = newest[0]
    if not cancel_service(store, request.number, now):
        raise RequestError(
            f"request {request.number} ({request.work}) is not cancelled: the writer's driver has begun it; "
            "`lakestream table` tells what comes of it"
        )
    return request
