"""Prometheus metrics of the operator, and of the LakeStreams that it looks after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lakestream_api import ConditionStatus, LakeStreamStatus

Statuses = Callable[[], Iterable[tuple[tuple[str, str], LakeStreamStatus]]]
"""Gives namespace, name and status of each LakeStream."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """What the operator does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix = "lakestream_operator"
        self._cycles = Histogram(
            f"{prefix}_cycle_seconds", "Time of a cycle: look, decide, act.", buckets=_SECONDS, registry=registry
        )
        self._reactions = Histogram(
            f"{prefix}_reaction_seconds",
            "Time from a change in the cluster to the end of the cycle that takes it up.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._actions = Counter(f"{prefix}_actions", "Actions taken.", ["action"], registry=registry)
        self._failures = Counter(f"{prefix}_failures", "Cycles that failed.", ["error"], registry=registry)

    def cycle(self, *, began: datetime, woken: datetime | None, ended: datetime) -> None:
        """A cycle is over; `woken` is when the first change was seen that called for it."""
        self._cycles.observe((ended - began).total_seconds())
        if woken is not None:
            self._reactions.observe((ended - woken).total_seconds())

    def acted(self, action: str) -> None:
        self._actions.labels(action).inc()

    def failed(self, error: str) -> None:
        self._failures.labels(error).inc()


class StreamMetrics(Collector):
    """The LakeStreams by their statuses; one that is gone leaves no series behind."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[GaugeMetricFamily]:
        stream, writer = ["namespace", "stream"], ["namespace", "stream", "writer"]
        phase = GaugeMetricFamily("lakestream_phase", "1 for the phase it is in.", labels=[*stream, "phase"])
        condition = GaugeMetricFamily(
            "lakestream_condition", "1 if the condition is true, else 0.", labels=[*stream, "type", "reason"]
        )
        lag = GaugeMetricFamily("lakestream_lag_seconds", "Lag of the writer's slowest shard.", labels=writer)
        rate = GaugeMetricFamily("lakestream_records_per_second", "Records read.", labels=writer)
        now = GaugeMetricFamily("lakestream_executors", "Executors that can be given tasks.", labels=writer)
        target = GaugeMetricFamily("lakestream_executors_target", "Executors that there should be.", labels=writer)
        quarantined = GaugeMetricFamily(
            "lakestream_quarantined_share", "Share of the last five minutes' records in quarantine.", labels=writer
        )
        failures = GaugeMetricFamily("lakestream_failures", "Failures of the driver in a row.", labels=writer)
        for key, status in self._statuses():
            phase.add_metric([*key, status.phase.value], 1)
            for one in status.conditions:
                condition.add_metric([*key, one.type.value, one.reason], one.status is ConditionStatus.TRUE)
            for each in status.writers:
                labels = [*key, each.name]
                if each.lag_seconds is not None:
                    lag.add_metric(labels, each.lag_seconds)
                if each.records_per_second is not None:
                    rate.add_metric(labels, each.records_per_second)
                now.add_metric(labels, each.executors.now)
                target.add_metric(labels, each.executors.target)
                quarantined.add_metric(labels, each.quarantine.share)
                failures.add_metric(labels, each.restarts)
        yield from (phase, condition, lag, rate, now, target, quarantined, failures)
