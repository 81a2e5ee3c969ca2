"""The status of a LakeStream: what was decided and seen, for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakestream_api import (
    DriverReport,
    ExecutorsStatus,
    LakeStreamStatus,
    WriterNames,
    WriterStatus,
)
from lakestream_operator.conditions import Findings, conditions, phase
from lakestream_operator.lag import lag_after
from lakestream_operator.model import Kind, Stream, WriterSeen
from lakestream_operator.quarantine import percent, quarantine_of
from lakestream_operator.writers import Situation, WriterDecision, timings

FIGURES_EVERY = timedelta(seconds=15)
"""How often a status is written in which only figures have changed."""

_RATE_BATCHES = 5


def status_of(stream: Stream, findings: Findings, now: datetime) -> LakeStreamStatus:
    """The whole status."""
    before = {one.name: one for one in stream.status.writers} if stream.status else {}
    writers = tuple(_writer(one, before.get(name), now) for name, one in findings.writers.items())
    lags = [one.lag_seconds for one in writers if one.lag_seconds is not None]
    rates = [one.records_per_second for one in writers if one.records_per_second is not None]
    return LakeStreamStatus(
        observed_generation=stream.generation,
        phase=phase(stream, findings),
        lag=timedelta(seconds=round(max(lags))) if lags else None,
        records_per_second=round(sum(rates)) if rates else None,
        quarantined=percent(max((one.quarantine.share for one in writers), default=0.0)) if writers else "",
        executors=_sum([one.executors for one in writers]),
        writers=writers,
        conditions=conditions(stream, findings, now),
        shards=" ".join(one.shards.state.explanation for one in findings.writers.values() if one.shards),
    )


def _sum(executors: Sequence[ExecutorsStatus]) -> ExecutorsStatus:
    return ExecutorsStatus(now=sum(one.now for one in executors), target=sum(one.target for one in executors))


def _writer(decision: WriterDecision, before: WriterStatus | None, now: datetime) -> WriterStatus:
    seen, outcome, scale = decision.seen, decision.outcome, decision.scale
    report, pod = seen.report, seen.driver_pod
    alive = bool(seen.own_report and pod and not pod.ended)
    last = report.batches[-1] if report and report.batches else None
    ending = outcome.memory.ending
    known = (before.read_until if before else None) or _begin_of(decision.goal.names, seen)
    plan = decision.goal.plan
    interval = plan.stream.spec.trigger.interval if plan else timedelta()
    lag = lag_of(report, now, alive=alive, interval=interval, before=known)
    stopped = outcome.situation in (Situation.STOPPED, Situation.STOPPING)
    return WriterStatus(
        name=decision.name,
        application=seen.application.state or "NEW" if seen.application else None,
        driver_pod=pod.name if pod else None,
        image=seen.application.image if seen.application else "",
        epoch=report.epoch if report else None,
        last_batch=last.batch if last else None,
        last_batch_at=last.finished_at if last else None,
        lag_seconds=lag.seconds if lag else None,
        read_until=lag.until if lag else None,
        records_per_second=_rate(report, now) if report and alive else None,
        filtered_share=_filtered(report),
        quarantine=quarantine_of(report),
        executors=ExecutorsStatus(
            now=report.executors.registered if report and alive else 0,
            target=0 if stopped else _target(decision),
        ),
        restarts=outcome.memory.failures,
        retry_at=ending.retry_at if ending and outcome.situation is Situation.BACKING_OFF else None,
        message=outcome.message or " ".join(one.message for one in decision.failing),
        scaling=scale.explanation if scale and not stopped else "",
    )


def _filtered(report: DriverReport | None) -> float:
    recent = report.lately if report else None
    return min(1.0, recent.filtered / recent.records) if recent and recent.records else 0.0


def _target(decision: WriterDecision) -> int:
    """Executors that its driver is to have: where they are not decided on, what was asked for last."""
    if decision.scale is not None:
        return decision.scale.target
    control = decision.seen.control
    return (control.executors or 0) if control and decision.goal.plan else 0


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a writer is behind."""

    seconds: float
    until: datetime
    """Up to when all that had arrived is read."""


def lag_of(
    report: DriverReport | None,
    now: datetime,
    *,
    alive: bool,
    interval: timedelta,
    before: datetime | None = None,
) -> Lag | None:
    """How far a writer is behind; none: it never was started.

    Where its driver says nothing, or no news, the lag grows: what arrived since is unread.

    Args:
        report: the last one, perhaps of a driver that is gone, or of one that has not read anything yet.
        now: the time.
        alive: whether the report is that of the driver that runs.
        interval: of its trigger.
        before: up to when all was read as was last known, or since when there is anything to read.
    """
    known = [(batch.finished_at, lag_after(batch)) for batch in report.batches[-1:]] if report else []
    if report and report.caught_up_at:
        known.append((report.caught_up_at, 0.0))
    if not known:
        return Lag(_seconds(now, before), before) if before else None
    known_at, lag = max(known)
    until = known_at - timedelta(seconds=lag)
    assert report is not None  # something is known of it
    # A driver may well report that it lives, and be answered by nobody.
    silent = now - report.updated_at
    news = alive and silent <= timings.late_limit(report) and now - known_at <= timings.quiet(report, interval)
    if lag == 0 and news:
        return Lag(0.0, until)
    # Between two batches of a driver that is behind, its lag stays about what it was.
    return Lag(round(lag, 1) if news else _seconds(now, until), until)


def _seconds(now: datetime, since: datetime) -> float:
    return round(max((now - since).total_seconds(), 0.0), 1)


def _begin_of(names: WriterNames, seen: WriterSeen) -> datetime | None:
    """Since when there is a writer; what was in the stream before is older, and nobody knows how much."""
    progress = seen.objects.get((Kind.ConfigMap, names.progress))
    return datetime.fromisoformat(progress["metadata"]["creationTimestamp"]) if progress else None


def _rate(report: DriverReport, now: datetime) -> float | None:
    """Records per second over the last batches, up to now: an idle stream's rate falls to 0."""
    batches = report.batches[-_RATE_BATCHES:]
    if len(batches) < 2:
        return None
    interval = batches[-1].trigger_interval
    # Until the next batch is due, nothing is to be concluded from there being none.
    end = max(batches[-1].finished_at, now - 2 * max(interval, timedelta(seconds=batches[-1].seconds.total)))
    seconds = (end - batches[0].finished_at).total_seconds()
    return round(sum(one.records for one in batches[1:]) / seconds, 1) if seconds > 0 else None


def is_news(old: LakeStreamStatus | None, new: LakeStreamStatus, since: timedelta) -> bool:
    """Whether a status has to be written: at once if something else than figures changed, else now and then."""
    if old is None or _without_figures(old) != _without_figures(new):
        return True
    return old != new and since >= FIGURES_EVERY


def _without_figures(status: LakeStreamStatus) -> object:
    return (
        status.observed_generation,
        status.phase,
        [(one.type, one.status, one.reason) for one in status.conditions],
        [
            (one.name, one.application, one.driver_pod, one.epoch, one.restarts, one.retry_at, one.executors)
            for one in status.writers
        ],
    )
