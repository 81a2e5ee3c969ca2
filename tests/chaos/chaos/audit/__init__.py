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
from chaos.audit.verdict import Found, Verdict, judge, misnamed

__all__ = [
    "Found",
    "Lake",
    "Named",
    "Verdict",
    "judge",
    "lines_of",
    "misnamed",
    "read_json",
    "read_named",
    "read_quarantine",
    "read_told",
    "rows_of",
    "services_of",
]
