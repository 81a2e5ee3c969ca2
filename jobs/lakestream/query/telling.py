"""What people are told of what was read. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakestream.query.history import show
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.spans import Comparison, Span
from lakestream.query.timeline import name_of


def told_of(span: Span, now: datetime, kind: str = "") -> str:
    """Which versions were read; `kind` is what goes before their names."""
    if span.commits is not None:
        if not span.commits:
            return "in which no commit was made in that time"
        first, last = span.commits[0], span.commits[-1]
        if first == last:
            return f"changed by {kind}{first}"
        return f"changed by {len(span.commits)} commits, from {kind}{first} to {kind}{last}"
    if span.last is None:
        return "which has no commits yet"
    return f"as of {kind}{span.last.name} ({show(span.last.at)}, {ago(now - span.last.at)})"


def told_of_comparison(found: Comparison) -> str:
    """Which versions were compared."""
    if found.before == found.after:
        return "in which no commit was made in that time"
    return f"changed from {found.before or 'nothing'} to {found.after}"


def staleness(folder: HudiFolder, base: str, left_out: int, now: datetime) -> str:
    """How old the base files of a table are.

    Args:
        folder: the table.
        base: instant of the oldest base file that has log files.
        left_out: how many log files there are.
        now: the time.
    """
    if not left_out:
        return "base files only, and there is nothing else"
    oldest = [version for version in folder.history.versions if name_of(version.at) > base and version.name != base][:1]
    since = f", of commits since {show(oldest[0].at)} ({ago(now - oldest[0].at)})" if oldest else ""
    return f"base files only: {left_out} log files are left out{since}"


def instant_of_log(name: str) -> str:
    """`.<file group>_<instant>.log.<n>_<token>`: the delta commit that wrote it."""
    return name.partition(".log.")[0].rpartition("_")[2]


def ago(span: timedelta) -> str:
    """`3 min ago`, in the largest unit of which there are two."""
    seconds = max(0, round(span.total_seconds()))
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
