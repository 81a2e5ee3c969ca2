"""What an archiving has left that was cut off. Pure.

Hudi puts instants into the archive first. Then it deletes them from the active timeline: all that they began with, and
after that what completed them, in order. So completed ones that have lost how they began are in the archive. But of a
batch such a commit may have come after its rollback, and must not be archived.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMMIT = re.compile(r"(\d+)(?:_\d+)?\.(commit|deltacommit|replacecommit)")
_BEGUN = re.compile(r"(\d+)\.[a-z]+\.requested")


def behind_half_archived(names: Iterable[str]) -> int | None:
    """How many completed commits are newer than the clusterings that an archiving has left.

    Args:
        names: of what is in the timeline's folder, of either layout.

    Returns:
        The number; None: it has left none.
    """
    listed = list(names)
    commits = [match.groups() for name in listed if (match := _COMMIT.fullmatch(name))]
    begun = {match[1] for name in listed if (match := _BEGUN.fullmatch(name))}
    left = {instant for instant, action in commits if action == "replacecommit"} - begun
    return sum(instant > max(left) for instant, _ in commits) if left else None
