"""Whether a lake has what its stream has, exactly once: a reading and a fold of their own."""

from chaos.audit.lake import Lake, read_json, read_quarantine, read_told
from chaos.audit.verdict import Found, Verdict, judge

__all__ = ["Found", "Lake", "Verdict", "judge", "read_json", "read_quarantine", "read_told"]
