"""What a writer keeps in quarantine: all data may be poison, and every batch is committed all the same. Pure."""

from __future__ import annotations

from lakestream_api import DriverReport, QuarantineStatus
from lakestream_api.recent import WINDOW


def quarantine_of(report: DriverReport | None) -> QuarantineStatus:
    """What the last batches of a driver kept in quarantine; nothing where nothing is reported."""
    recent = report.lately if report else None
    if report is None or recent is None or not recent.quarantined:
        return QuarantineStatus()
    kept, taken = recent.quarantined, recent.records - recent.filtered
    # Not rounded: a single one of millions is more than the nothing that `warnFraction: 0.0` allows.
    return QuarantineStatus(records=kept, share=kept / max(taken, kept), reason=report.quarantine_reason)


def tell_of(writer: str, kept: QuarantineStatus) -> str:
    """For people."""
    why = f", as for one of the last: {kept.reason.rstrip('.')}" if kept.reason else ""
    return (
        f"Writer {writer}: {percent(kept.share)} of the records of the last {WINDOW.seconds // 60} minutes "
        f"({kept.records:,}) are in quarantine and not in the table{why}."
    )


def percent(share: float) -> str:
    """A share as in `1.5%`; what is more than nothing is never 0."""
    return f"{max(100 * share, 0.01):.2f}".rstrip("0").rstrip(".") + "%" if share else "0%"
