"""Holds a lake against the ledger: what is missing, doubled, altered; and a snapshot against the log's fold."""

from lakestream_loadgen.audit.fold import SnapshotVerdict, compare, fold
from lakestream_loadgen.audit.lake import read_json_lake, read_parquet, read_quarantine
from lakestream_loadgen.audit.verdict import AuditVerdict, Finding, Kind, OpenLedgerSeen, audit

__all__ = [
    "AuditVerdict",
    "Finding",
    "Kind",
    "OpenLedgerSeen",
    "SnapshotVerdict",
    "audit",
    "compare",
    "fold",
    "read_json_lake",
    "read_parquet",
    "read_quarantine",
]
