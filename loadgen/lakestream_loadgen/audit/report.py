"""An audit for a person and for a program."""

from __future__ import annotations

from dataclasses import asdict

import orjson

from lakestream_loadgen.audit.fold import SnapshotVerdict
from lakestream_loadgen.audit.verdict import AuditVerdict, Kind

_LAST_LINES = (
    "audit passed",
    "AUDIT FAILED",
    "AUDIT INCOMPLETE: the last of these ledgers may be lost, and losses with it; --allow-open-ledgers passes them, if "
    "their workers were killed and the files are whole",
)


def report_json(verdict: AuditVerdict, snapshot: SnapshotVerdict | None) -> bytes:
    """``{"ok", "audit": {…, "ok"}, "snapshot": {…, "ok"} or null}``."""
    document = {
        "ok": verdict.ok and (snapshot is None or snapshot.ok),
        "audit": {"ok": verdict.ok, **asdict(verdict)},
        "snapshot": None if snapshot is None else {"ok": snapshot.ok, **asdict(snapshot)},
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def report_text(verdict: AuditVerdict, snapshot: SnapshotVerdict | None) -> str:
    """Counts, then examples of what is wrong."""
    lines = [
        f"acknowledged {verdict.acknowledged:>12,}   failed {verdict.failed:,}, unknown {verdict.unknown:,} "
        f"({verdict.unknown_arrived:,} arrived)",
        f"rows         {verdict.rows:>12,}   quarantined {verdict.quarantined:,}, "
        f"producer's own duplicates {verdict.producer_duplicates:,}",
    ]
    lines += [f"{kind.replace('_', ' '):<20}{getattr(verdict, kind):>5,}" for kind in Kind]
    for finding in verdict.findings:
        lines.append(f"  {finding.kind}: {finding.event_id} at {finding.shard_id} {finding.sequence_number}")
    for seen in verdict.open_ledgers:
        lines.append(
            f"open ledger  {seen.name} has no end: {seen.unsettled:,} events without an outcome, {seen.absent:,} of "
            f"which did not arrive; {seen.sent_after:,} rows of events sent after it ends"
        )
    if snapshot is not None:
        lines.append(
            f"snapshot     {snapshot.rows:>12,}   missing {snapshot.missing:,}, unexpected {snapshot.unexpected:,}, "
            f"different {snapshot.different:,}, doubled {snapshot.doubled:,}"
        )
        lines += [f"  order {order}" for order in snapshot.samples]
    lines.append(_LAST_LINES[exit_status(verdict, snapshot)])
    return "\n".join(lines)


def exit_status(verdict: AuditVerdict, snapshot: SnapshotVerdict | None) -> int:
    """0 passed, 1 something is wrong, 2 nothing is, of what can be seen."""
    if not verdict.faultless or (snapshot is not None and not snapshot.ok):
        return 1
    return 0 if verdict.complete else 2
