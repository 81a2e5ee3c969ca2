"""Whether a lake has what its stream has, exactly once: a reading and a fold of their own."""

from chaos.audit.lake import (
    Lake,
    Named,
    lines_of,
    read_json,
    read_named,
    read_quarantine,
    read_told,
    rows_of,
    services_of,
)
from chaos.audit.seen import Seen, judge_seen, read_seen
from chaos.audit.verdict import Found, Reject, Verdict, judge, misnamed

__all__ = [
    "Found",
    "Lake",
    "Named",
    "Reject",
    "Seen",
    "Verdict",
    "judge",
    "judge_seen",
    "lines_of",
    "misnamed",
    "read_json",
    "read_named",
    "read_quarantine",
    "read_seen",
    "read_told",
    "rows_of",
    "services_of",
]
