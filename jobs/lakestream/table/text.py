"""A report for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from lakestream.aligned import aligned, widths_of
from lakestream.log import CANCELLED
from lakestream.query.history import show
from lakestream.query.telling import ago
from lakestream.table.files import Files
from lakestream.table.report import Action, Asked, HudiReport, JsonReport, Quarantine
from lakestream.texts import printable
from lakestream_api import rounded_size


def as_text(report: HudiReport | JsonReport, now: datetime) -> str:
    """Lines, with what needs attention marked by `!`."""
    lines = _hudi(report, now) if isinstance(report, HudiReport) else _json(report, now)
    return "".join(f"{printable(line)}\n" for line in lines)


def _hudi(report: HudiReport, now: datetime) -> Iterable[str]:
    slices = report.slices
    ordering = f", ordered by {report.ordering}" if report.ordering else ""
    partitions = f", partitioned by {report.partition_by}" if report.partition_by else ""
    yield f"{report.name}  {report.path}"
    yield f"Hudi {report.type}, table version {report.version}, {report.layout or 'another writer’s layout'}"
    yield f"key {report.key}{ordering}{partitions}"
    yield ""
    yield from _aligned(
        [
            ("partitions", f"{slices.partitions:,}", f"{slices.file_groups:,} file groups"),
            ("base files", *_files(slices.base)),
            ("  below 32 MiB", *_files(slices.small)),
            ("log files waiting", *_files(slices.waiting)),
            ("replaced, kept", *_files(slices.replaced)),
            ("of no commit", *_files(slices.unfinished)),
        ]
    )
    if report.readable_since is not None:
        yield f"time travel reaches back to {show(report.readable_since)}, {ago(now - report.readable_since)}"
    for savepoint in report.savepoints:
        made = "" if savepoint.completed_at is None else f", made {ago(now - savepoint.completed_at)}"
        yield f"savepoint {savepoint.instant}{made}{savepoint.comment and f': {savepoint.comment}'}"
    yield _quarantine(report.quarantine, now)
    if report.asked is not None:
        yield _asked(report.asked, now)
    yield ""
    shown, pending = report.timeline, [action for action in report.timeline if action.completed_at is None]
    yield f"timeline: {len(shown)} of {report.instants} instants"
    head = ("instant", "action", "completed", "took", "batch", "rows", "deletes", "files", "size")
    yield from _aligned([head, *(_row(action) for action in shown)], numbers=(3, 4, 5, 6, 7, 8))
    for action in pending:
        yield f"! {action.action} {action.instant} is {action.state}: being done, or left by a driver that ended"


def _asked(asked: Asked, now: datetime) -> str:
    request = f"request {asked.number} ({asked.work})"
    if asked.ended_at is None:
        return f"! {request}, made {ago(now - asked.requested_at)}, waits for the writer's driver"
    if asked.error == CANCELLED:
        return f"{request} was cancelled {ago(now - asked.ended_at)}"
    if asked.error:
        return f"! {request} failed {ago(now - asked.ended_at)}: {asked.error}"
    return f"{request} was done {ago(now - asked.ended_at)}"


def _json(report: JsonReport, now: datetime) -> Iterable[str]:
    yield report.path
    yield f"JSON files, of {report.batches:,} committed batches"
    yield ""
    yield from _aligned(
        [
            ("partitions", f"{report.partitions:,}", f"{report.rows:,} rows"),
            ("files", *_files(report.files)),
            ("  below 32 MiB", *_files(report.small)),
        ]
    )
    if report.first_commit is not None and report.last_commit is not None:
        last = f"{show(report.last_commit)}, {ago(now - report.last_commit)}"
        yield f"first commit {show(report.first_commit)}, last {last}"
    yield _quarantine(report.quarantine, now)


def _quarantine(rejects: Quarantine | None, now: datetime) -> str:
    if rejects is None:
        return "quarantine: not known without the writer's checkpoint; give -f and --writer"
    if rejects.last is None:
        return "quarantine: empty"
    return f"! quarantine: {rejects.records:,} records in {rejects.files:,} files, the last {ago(now - rejects.last)}"


def _row(action: Action) -> tuple[str, ...]:
    numbers = (action.batch, action.rows, action.deletes, action.files)
    return (
        action.instant,
        action.action,
        action.state if action.completed_at is None else f"{action.completed_at:%m-%d %H:%M:%S}",
        "" if action.seconds is None else f"{action.seconds:.1f} s",
        *("" if number is None else f"{number:,}" for number in numbers),
        "" if action.bytes is None else rounded_size(action.bytes),
    )


def _files(files: Files) -> tuple[str, str]:
    return f"{files.count:,}", rounded_size(files.bytes)


def _aligned(rows: Sequence[Sequence[str]], numbers: Sequence[int] = (1, 2)) -> Iterable[str]:
    widths = widths_of(rows)
    return (aligned(row, widths, numbers) for row in rows)
