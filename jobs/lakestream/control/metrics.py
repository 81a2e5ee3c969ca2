"""Progress as Prometheus metrics. A port is opened only by `serve_metrics`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from lakestream.errors import SettingsError
from lakestream_api import Progress

_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0)
"""A trigger may be an hour apart, and a batch of a backlog takes longer."""
_MOST_SHARDS = 100
"""Beyond this the lag per shard is left out: a series for each of thousands would cost more than it tells."""


class _TableMetrics:
    """What the table says of itself; how compaction, cleaning and archiving go has the label `service` as well."""

    def __init__(self, names: tuple[str, ...], registry: CollectorRegistry) -> None:
        def table(name: str, meaning: str) -> Gauge:
            return Gauge(f"lakestream_{name}", meaning, names, registry=registry)

        def service(name: str, meaning: str) -> Gauge:
            return Gauge(f"lakestream_table_service_{name}", meaning, (*names, "service"), registry=registry)

        self._remembered = table("remembered_deletes", "Deletes that older versions of their keys are held against.")
        self._largest = table("largest_file_bytes", "Largest file that later batches add to; 0: none is known.")
        self._failing = service("failing", "Runs in a row that failed; 0: the last one succeeded.")
        self._failed = service("failed_runs", "Runs that failed since the driver's start.")
        self._behind = service("behind_commits", "Commits since the last completed run began.")
        self._seconds = service("duration_seconds", "Time that the last completed run took.")

    def publish(self, progress: Progress) -> None:
        job = (progress.stream, progress.writer)
        self._remembered.labels(*job).set(progress.remembered_deletes)
        self._largest.labels(*job).set(progress.largest_file)
        for one in progress.table_services:
            labels = (*job, one.name)
            self._failing.labels(*labels).set(one.failing)
            self._failed.labels(*labels).set(one.failed)
            self._behind.labels(*labels).set(one.behind_commits)
            self._seconds.labels(*labels).set(one.seconds)


class PrometheusProgress:
    """Metrics of one writer. Every series has the labels `stream` and `writer`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        names = ("stream", "writer")

        def counter(name: str, meaning: str) -> Counter:
            return Counter(f"lakestream_{name}", meaning, names, registry=registry)

        def gauge(name: str, meaning: str) -> Gauge:
            return Gauge(f"lakestream_{name}", meaning, names, registry=registry)

        def histogram(name: str, meaning: str, *labels: str) -> Histogram:
            labels = (*names, *labels)
            return Histogram(f"lakestream_{name}", meaning, labels, buckets=_SECONDS, registry=registry)

        self._batches = counter("batches", "Batches committed.")
        self._records = counter("records", "Records read and committed.")
        self._bytes = counter("record_bytes", "Bytes of record data committed.")
        self._quarantined = counter("quarantined_records", "Records kept in quarantine.")
        self._losses = counter("losses", "Ranges of shards that were trimmed before they were read, and skipped.")
        self._filtered = counter("filtered_records", "Records left out by spec.filter.")
        self._misplaced = counter("misplaced_records", "Records of aggregates left out, as of other shards.")
        self._rows = counter("rows_written", "Rows given to the sink.")
        self._batch_seconds = histogram("batch_duration_seconds", "Work of a batch, waiting for the trigger excluded.")
        self._stage_seconds = histogram("stage_duration_seconds", "Work of a batch by stage.", "stage")
        self._lag = gauge("last_batch_lag_seconds", "Lag of the slowest shard; 0 at its tip.")
        self._shard_lag = Gauge(
            "lakestream_shard_lag_seconds", "Lag of each shard, up to 100.", (*names, "shard"), registry=registry
        )
        self._shards = gauge("shards", "Shards being read.")
        self._freshness = Gauge(
            "lakestream_freshness_seconds",
            "Age at which half (0.5) and 99 of 100 (0.99) of the records became visible, or younger; of the last batch "
            "that had any.",
            (*names, "quantile"),
            registry=registry,
        )
        self._committed = gauge(
            "last_commit_timestamp_seconds", "When the last batch was committed; a lag is as old as this."
        )
        self._batch = gauge("last_batch", "Number of the last batch.")
        self._epoch = gauge("epoch", "Number of the driver's start.")
        self._executors = gauge("last_batch_executors", "Executors that ran the last batch.")
        self._cores = gauge("executor_cores", "Cores of each executor.")
        self._table = _TableMetrics(names, registry)

    def publish(self, progress: Progress) -> None:
        job = (progress.stream, progress.writer)
        self._batches.labels(*job).inc()
        self._records.labels(*job).inc(progress.records)
        self._bytes.labels(*job).inc(progress.bytes)
        self._quarantined.labels(*job).inc(progress.quarantined)
        self._losses.labels(*job).inc(len(progress.losses))
        self._misplaced.labels(*job).inc(progress.misplaced)
        self._filtered.labels(*job).inc(progress.filtered)
        self._rows.labels(*job).inc(progress.rows_written)
        self._batch_seconds.labels(*job).observe(progress.seconds.total)
        for stage in type(progress.seconds).model_fields:
            self._stage_seconds.labels(*job, stage).observe(getattr(progress.seconds, stage))
        self._lag.labels(*job).set(progress.lag_seconds)
        self._shards.labels(*job).set(len(progress.shards))
        self._publish_shards(progress)
        if progress.freshness is not None:
            self._freshness.labels(*job, "0.5").set(progress.freshness.p50_seconds)
            self._freshness.labels(*job, "0.99").set(progress.freshness.p99_seconds)
        self._committed.labels(*job).set(progress.finished_at.timestamp())
        self._batch.labels(*job).set(progress.batch)
        self._epoch.labels(*job).set(progress.epoch)
        self._executors.labels(*job).set(progress.executors)
        self._cores.labels(*job).set(progress.cores)
        self._table.publish(progress)

    def _publish_shards(self, progress: Progress) -> None:
        # Afresh each time: a shard that was split would keep its last lag for ever.
        self._shard_lag.clear()
        if len(progress.shards) <= _MOST_SHARDS:
            for shard in progress.shards:
                self._shard_lag.labels(progress.stream, progress.writer, shard.shard_id).set(shard.lag_seconds)


@contextmanager
def serve_metrics(registry: CollectorRegistry, port: int, *, loopback: bool) -> Iterator[int]:
    """Serve a registry at `/metrics` until the end of the context; the port, also if 0 was asked for.

    To this machine alone, or at all addresses, of IPv4 and IPv6.

    Raises:
        SettingsError: the port is taken, or nobody but root may have it.
    """
    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    address = "127.0.0.1" if loopback else everywhere
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise SettingsError(f"--metrics-port {port} cannot be had: {error.strerror}; give each driver one") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
