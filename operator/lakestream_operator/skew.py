"""A driver's times by the API server's clock. Pure."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from lakestream_api import DriverReport
from lakestream_api.base import WireModel

M = TypeVar("M", bound=WireModel)

_SKEW = timedelta(seconds=10)
"""Between two clocks, from which on it counts: for nearly so long a report may be on its way."""
_SENSELESS = timedelta(days=500 * 366)
"""Who is so far off tells no time, and by him all others would be moved to where there is none."""


def by_the_servers(report: DriverReport, written_at: datetime) -> DriverReport:
    """A report with its driver's times by the API server's clock: that of a driver's node may be wrong by minutes, and
    Kinesis's times, which stand beside its own, are not.

    Args:
        report: as the driver wrote it.
        written_at: when, by the API server's clock.
    """
    behind = written_at - report.updated_at
    with suppress(OverflowError):  # of others that make no sense
        return _all_moved(report, behind) if _SKEW < abs(behind) < _SENSELESS else report
    return report


def _all_moved(report: DriverReport, by: timedelta) -> DriverReport:
    update = {
        "batches": tuple(_moved(one, by, "finished_at") for one in report.batches),
        "fetched": _moved(report.fetched, by, "fetched_at") if report.fetched else None,
        "table_services": tuple(_moved(one, by, "failing_since") for one in report.table_services),
    }
    return _moved(report, by, "started_at", "updated_at", "caught_up_at").model_copy(update=update)


def _moved(model: M, by: timedelta, *fields: str) -> M:
    times = {field: getattr(model, field) for field in fields}
    return model.model_copy(update={field: time + by for field, time in times.items() if time is not None})
