"""The figures of a load run as Prometheus text, at ``/metrics`` of Locust's page.

Those of all workers, as the master knows them (they report every three seconds). The counters start again
from 0 when somebody clears the statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Response
from locust.env import Environment
from locust.stats import StatsEntry

from lakestream_loadgen.statistics import ACKNOWLEDGED, FAILED, METHOD, THROTTLED, UNKNOWN

CONTENT_TYPE = "text/plain; version=0.0.4"


@dataclass(frozen=True, slots=True)
class Counter:
    """A figure of one row of Locust's table; one sample a stream."""

    name: str
    help: str
    row: str
    value: Callable[[StatsEntry], int] = lambda entry: entry.num_requests


COUNTERS = (
    Counter("lakestream_load_acknowledged_records_total", "Records that Kinesis acknowledged.", ACKNOWLEDGED),
    Counter(
        "lakestream_load_acknowledged_bytes_total",
        "Bytes of data of acknowledged records.",
        ACKNOWLEDGED,
        lambda entry: entry.total_content_length,
    ),
    Counter("lakestream_load_failed_records_total", "Records given up that are certainly not in the stream.", FAILED),
    Counter("lakestream_load_unknown_records_total", "Records given up that may be in the stream.", UNKNOWN),
    Counter("lakestream_load_throttled_records_total", "Refusals for the throughput of a shard.", THROTTLED),
)


def serve_metrics(environment: Environment, **_: Any) -> None:
    """Listener for Locust's init event; a process without a page serves nothing."""
    page = environment.web_ui.app if environment.web_ui else None
    if page is not None:
        page.add_url_rule(
            "/metrics", "metrics", lambda: Response(render_metrics(environment), content_type=CONTENT_TYPE)
        )


def render_metrics(environment: Environment) -> str:
    """All figures of all streams. Stream names need no escaping, and have no colon."""
    runner = environment.runner
    lines = [
        *_head("lakestream_load_users", "gauge", "Users that run."),
        f"lakestream_load_users {runner.user_count if runner else 0}",
        *_head("lakestream_load_workers", "gauge", "Workers that the master knows."),
        f"lakestream_load_workers {getattr(runner, 'worker_count', 1)}",
    ]
    for counter in COUNTERS:
        lines += _head(counter.name, "counter", counter.help)
        for entry in environment.stats.entries.values():
            stream, _, row = entry.name.partition(": ")
            if entry.method == METHOD and row == counter.row:
                lines.append(f'{counter.name}{{stream="{stream}"}} {counter.value(entry)}')
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
