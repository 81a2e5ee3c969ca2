"""The figures of CloudWatch's stream and shard metrics, as Prometheus text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.shard import Shard

CONTENT_TYPE = "text/plain; version=0.0.4"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of each shard."""

    name: str
    kind: str
    help: str
    value: Callable[[Shard], int]


METRICS = (
    Metric("kinesis_incoming_records_total", "counter", "Records put.", lambda s: s.counters.incoming_records),
    Metric(
        "kinesis_incoming_bytes_total",
        "counter",
        "Bytes of data and partition keys put.",
        lambda s: s.counters.incoming_bytes,
    ),
    Metric(
        "kinesis_write_throttles_total",
        "counter",
        "Records refused because the shard's write rate was used up.",
        lambda s: s.counters.write_throttles,
    ),
    Metric("kinesis_outgoing_records_total", "counter", "Records read.", lambda s: s.counters.outgoing_records),
    Metric(
        "kinesis_outgoing_bytes_total",
        "counter",
        "Bytes of data and partition keys read.",
        lambda s: s.counters.outgoing_bytes,
    ),
    Metric(
        "kinesis_read_throttles_total",
        "counter",
        "GetRecords calls refused because the shard's read rate was used up.",
        lambda s: s.counters.read_throttles,
    ),
    Metric(
        "kinesis_iterator_age_milliseconds",
        "gauge",
        "How far behind now the latest GetRecords of any consumer ended.",
        lambda s: s.counters.iterator_age_ms,
    ),
    Metric("kinesis_retained_records", "gauge", "Records held in memory within retention.", len),
    Metric("kinesis_shard_open", "gauge", "1 if the shard takes records.", lambda s: int(s.is_open)),
)


def render_metrics(account: Account) -> str:
    """All figures of all shards that are open or retained. Stream names need no escaping."""
    lines = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for stream in account.streams.values():
            for shard in stream.shards.values():
                labels = f'stream="{stream.name}",shard="{shard.id}"'
                lines.append(f"{metric.name}{{{labels}}} {metric.value(shard)}")
    return "\n".join(lines) + "\n"
