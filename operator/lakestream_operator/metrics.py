"""Prometheus metrics of the operator, and of the LakeStreams that it looks after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lakestream_api import ConditionStatus, LakeStreamStatus, WriterStatus

Statuses = Callable[[], Iterable[tuple[tuple[str, str], LakeStreamStatus]]]
"""Gives namespace, name and status of each LakeStream."""

_OF_WRITERS: Mapping[str, tuple[str, Callable[[WriterStatus], float | None]]] = {
    "lakestream_lag_seconds": ("Lag of the writer's slowest shard.", lambda one: one.lag_seconds),
    "lakestream_records_per_second": ("Records read.", lambda one: one.records_per_second),
    "lakestream_executors": ("Executors that can be given tasks.", lambda one: one.executors.now),
    "lakestream_executors_target": ("Executors that there should be.", lambda one: one.executors.target),
    "lakestream_filtered_share": (
        "Share of the last five minutes' records left out by spec.filter.",
        lambda one: one.filtered_share,
    ),
    "lakestream_quarantined_share": (
        "Share of the last five minutes' records in quarantine.",
        lambda one: one.quarantine.share,
    ),
    "lakestream_failures": ("Failures of the driver in a row.", lambda one: one.restarts),
}
"""What they say, and from where; None: nothing."""
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
        self._listed = Gauge(
            f"{prefix}_listed", "1 if all that there is could be listed the last time, else 0.", registry=registry
        )
        # One that is scraped between two restarts looks well each time; it changes with them.
        Gauge(
            f"{prefix}_start_time_seconds", "When this process began to lead, in Unix time.", registry=registry
        ).set_to_current_time()

    def cycle(self, *, began: datetime, woken: datetime | None, ended: datetime) -> None:
        """A cycle is over; `woken` is when the first change was seen that called for it."""
        # By a clock that was put back meanwhile it would have taken less than nothing.
        self._cycles.observe(max(0.0, (ended - began).total_seconds()))
        if woken is not None:
            self._reactions.observe(max(0.0, (ended - woken).total_seconds()))

    def acted(self, action: str) -> None:
        self._actions.labels(action).inc()

    def failed(self, error: str) -> None:
        self._failures.labels(error).inc()

    def listed(self, *, everything: bool) -> None:
        """Whether there is nothing that the operator cannot see."""
        self._listed.set(everything)


class StreamMetrics(Collector):
    """The LakeStreams by their statuses; one that is gone leaves no series behind."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[GaugeMetricFamily]:
        stream = ["namespace", "stream"]
        phase = GaugeMetricFamily("lakestream_phase", "1 for the phase it is in.", labels=[*stream, "phase"])
        condition = GaugeMetricFamily(
            "lakestream_condition", "1 if the condition is true, else 0.", labels=[*stream, "type", "reason"]
        )
        writers = [
            (GaugeMetricFamily(name, told, labels=[*stream, "writer"]), value)
            for name, (told, value) in _OF_WRITERS.items()
        ]
        for key, status in self._statuses():
            phase.add_metric([*key, status.phase.value], 1)
            for one in status.conditions:
                condition.add_metric([*key, one.type.value, one.reason], one.status is ConditionStatus.TRUE)
            for writer in status.writers:
                for gauge, value in writers:
                    if (known := value(writer)) is not None:
                        gauge.add_metric([*key, writer.name], known)
        yield from (phase, condition, *(gauge for gauge, _ in writers))
