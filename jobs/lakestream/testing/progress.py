"""Progress as a driver tells it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lakestream.testing.logs import EPOCH_TIME
from lakestream_api import Progress, StageSeconds


def progress_with(**told: Any) -> Progress:
    """That of a batch of one record at time 0, but for the fields that are given."""
    usual: dict[str, Any] = {
        "stream": "orders",
        "writer": "hudi",
        "batch": 1,
        "epoch": 1,
        "finished_at": EPOCH_TIME,
        "records": 1,
        "bytes": 1,
        "quarantined": 0,
        "rows_written": 1,
        "seconds": StageSeconds(plan=0, fetch=0, write=0, commit=0),
        "trigger_interval": timedelta(seconds=2),
        "executors": 1,
        "cores": 1,
        "shards": (),
        "lag_seconds": 0,
        "caught_up": True,
    }
    return Progress(**usual | told)
