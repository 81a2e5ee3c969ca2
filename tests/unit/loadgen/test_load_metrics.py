"""What Prometheus sees of a load. Run in a process of its own: Locust patches the one that imports it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

SCRIPT = """
from collections import Counter
from locust.env import Environment
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.metrics import serve_metrics
from lakestream_loadgen.statistics import LocustStatistics, RecordsSettled

environment = Environment()
for stream in ("orders", "clicks"):
    statistics = LocustStatistics(environment, stream, RecordsSettled(environment))
    statistics.called(0.02, 1000, None)
    statistics.acknowledged(500, 125_000, Counter({0.03: 500}))
statistics.given_up(3, Outcome.FAILED, "ValidationException")
statistics.given_up(2, Outcome.UNKNOWN, "ConnectionLost")
statistics.throttled(7)
serve_metrics(environment)  # no page, nothing to serve
environment.create_local_runner()
web = environment.create_web_ui("127.0.0.1", 0)
serve_metrics(environment)
answer = web.app.test_client().get("/metrics")
assert answer.status_code == 200
assert answer.content_type == "text/plain; version=0.0.4"
print(answer.text)
"""


def test_the_page_serves_the_figures_of_each_stream() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == [
        "lakestream_load_users 0",
        "lakestream_load_workers 1",
        'lakestream_load_acknowledged_records_total{stream="orders"} 500',
        'lakestream_load_acknowledged_records_total{stream="clicks"} 500',
        'lakestream_load_acknowledged_bytes_total{stream="orders"} 125000',
        'lakestream_load_acknowledged_bytes_total{stream="clicks"} 125000',
        'lakestream_load_failed_records_total{stream="clicks"} 3',
        'lakestream_load_unknown_records_total{stream="clicks"} 2',
        'lakestream_load_throttled_records_total{stream="clicks"} 7',
    ]
    assert "# TYPE lakestream_load_failed_records_total counter" in lines
