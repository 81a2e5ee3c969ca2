"""What an archiving has left that was cut off. Pure.

Hudi puts instants into the archive first. Then it deletes them from the active timeline: all that they began with, and
after that what completed them, in order. So completed ones that have lost how they began are in the archive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMPLETED = re.compile(r"(\d+)(?:_\d+)?\.(?:commit|deltacommit|replacecommit)")
_BEGUN = re.compile(r"(\d+)\.[a-z]+\.requested")


def behind_half_archived(names: Iterable[str]) -> int | None:
    """How many completed commits are newer than those that an archiving has left.

    Args:
        names: of what is in the timeline's folder, of either layout.

    Returns:
        The number; None: it has left none.
    """
    listed = list(names)
    completed = {match[1] for name in listed if (match := _COMPLETED.fullmatch(name))}
    left = completed - {match[1] for name in listed if (match := _BEGUN.fullmatch(name))}
    return sum(one > max(left) for one in completed) if left else None
