"""Which shards there are, in which order they are read, and what may have been lost. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from lakestream.errors import SettingsError
from lakestream.kinesis.port import IteratorStart, Shard, StreamSummary
from lakestream.kinesis.settings import LEAST_RETENTION, StartingPosition
from lakestream.model import Cursor, Finished, Loss, Reading, Trim, Unpinned, Waiting

Shards = Mapping[str, Shard]
Cursors = Mapping[str, Cursor]

_DATE_RESOLUTION = timedelta(seconds=1)
_TRIM_MARGIN = timedelta(minutes=5)
"""What is so close to being trimmed may be gone before it is read."""
_FIRST_MARGIN = timedelta(minutes=15)
"""Enough for a first batch to be planned and read, also where executors wait for nodes and images; 1 % of the shortest
retention."""


_LONG_SILENCE = timedelta(hours=1)

_BEFORE_SEEN = timedelta(minutes=15)
"""What arrival times, which are approximate, and the clock of a look may be apart by, and much more."""


def first_cursors(shards: Shards, start: StartingPosition, now: datetime, stream: StreamSummary) -> dict[str, Cursor]:
    """The cursors of a new checkpoint.

    LATEST becomes the present Kinesis time, so that every later start means the same place. In a
    stream that is trimming already, TRIM_HORIZON becomes a time a little younger than the oldest
    record: that one would be gone between plan and read, which would look like data loss.

    All shards begin at the same time; parents come before their children all the same, since a
    child may have records only if its parents have none any more. A parent that ListShards no
    longer has counts as finished.

    Raises:
        SettingsError: the starting timestamp lies in the future.
    """
    since: datetime | None = None
    unread_since = stream.created_at
    safe = now - stream.retention + _FIRST_MARGIN
    if isinstance(start, datetime):
        if start > now:
            raise SettingsError(
                f"spec.source.kinesis.timestamp {start.isoformat()} is in the future: Kinesis has {now.isoformat()}"
            )
        since, unread_since = start, max(start, stream.created_at)
    elif start == "LATEST":
        since = unread_since = now
    elif stream.created_at < safe:
        since = unread_since = safe
    waiting: dict[str, Cursor] = {shard_id: Waiting(shard_id, since, unread_since) for shard_id in shards}
    return start_ready(waiting, shards)


def older_than_kept(start: datetime, trim: Trim) -> str:
    """What is wrong with a starting timestamp from which on records may be gone, and what to do."""
    best = (trim.floor + _FIRST_MARGIN + timedelta(minutes=1)).replace(second=0, microsecond=0)
    return (
        f"spec.source.kinesis.timestamp is {start.isoformat()}, and what arrived before "
        f"{trim.floor.isoformat(timespec='seconds')} may be gone: the stream keeps records for "
        f"{trim.retention.total_seconds() / 3600:g} h. Nothing is read yet: set it to {best:%Y-%m-%dT%H:%MZ} or later; "
        "or begin with the oldest that is left, by startingPosition: TRIM_HORIZON and without timestamp"
    )


def adopt(cursors: Cursors, shards: Shards, oldest: datetime, since: datetime | None = None) -> dict[str, Cursor]:
    """Add the shards that appeared since: children, to be read after their parents, from the beginning or from a time.

    A child has no record older than the oldest unread one of its parents, nor than the time that is given. While
    nothing was seen of a parent, it begins where that one does: a listing behind a split may lack it at first.
    """
    known: dict[str, Cursor] = dict(cursors)
    new = shards.keys() - cursors.keys()
    if new:
        new -= _passed(cursors, shards)
    # Parents sort before children: shard ids are numbered in the order of creation.
    for shard_id in sorted(new):
        parents = [known[p] for p in shards[shard_id].parents if p in known]
        begin = since or next((c.since for c in parents if isinstance(c, Waiting | Unpinned)), None)
        bounds = filter(None, map(unread_since, parents))
        known[shard_id] = Waiting(shard_id, begin, max(bounds, default=oldest))
    return known


def _passed(cursors: Cursors, shards: Shards) -> set[str]:
    """Ancestors of shards with a cursor: finished and forgotten since, and listed by a server that is behind."""
    passed: set[str] = set()
    for shard_id in sorted(shards, reverse=True):
        if shard_id in cursors or shard_id in passed:
            passed.update(shards[shard_id].parents)
    return passed


def start_ready(cursors: Cursors, shards: Shards) -> dict[str, Cursor]:
    """Start the shards whose parents are all finished; forget finished ones that ListShards dropped."""
    started: dict[str, Cursor] = {}
    for shard_id, cursor in cursors.items():
        shard = shards.get(shard_id)
        if shard is None and isinstance(cursor, Finished):
            continue
        if isinstance(cursor, Waiting) and shard is not None and all(_is_done(p, cursors) for p in shard.parents):
            started[shard_id] = Unpinned(shard_id, cursor.since, cursor.unread_since)
        else:
            started[shard_id] = cursor
    return started


def _is_done(parent: str, cursors: Cursors) -> bool:
    return isinstance(cursors.get(parent), Finished | None)


def finish(cursors: Cursors, finished: Mapping[str, datetime], shards: Shards) -> dict[str, Cursor]:
    """Mark shards as read to their end. Their children are not older than what the shard was known to hold.

    Args:
        finished: by shard, a lower bound for the arrival of its last record.
    """
    done: dict[str, Cursor] = {**cursors, **{shard_id: Finished(shard_id) for shard_id in finished}}
    for shard_id, cursor in done.items():
        if isinstance(cursor, Waiting) and not finished.keys().isdisjoint(parents_of(shard_id, shards)):
            bounds = [finished[parent] for parent in parents_of(shard_id, shards) if parent in finished]
            done[shard_id] = Waiting(shard_id, cursor.since, max(cursor.unread_since, *bounds))
    return done


def parents_of(shard_id: str, shards: Shards) -> tuple[str, ...]:
    """Parents of a shard; none if ListShards does not have it."""
    return shards[shard_id].parents if shard_id in shards else ()


def ended(cursors: Iterable[Cursor], until: datetime, late: timedelta, shards: Shards) -> tuple[Cursor, ...]:
    """The cursors, and in place of those of shards that have nothing more of a span that they are finished; children of
    these have nothing older than its end.

    Args:
        cursors: sorted by shard.
        until: end of the span, an arrival time.
        late: so long after a time a shard may still get records that arrived before it.
        shards: as ListShards tells them.
    """
    of_shards = {cursor.shard_id: cursor for cursor in cursors}
    done = {shard_id: until for shard_id, cursor in of_shards.items() if _has_ended(cursor, until, late)}
    return tuple(finish(of_shards, done, shards).values())


def _has_ended(cursor: Cursor, until: datetime, late: timedelta) -> bool:
    match cursor:
        case Reading(position=position) if not position.after:
            return cursor.arrival >= until  # it stands at the first record behind the span
        case Reading(tip_seen=seen) | Unpinned(unread_since=seen):
            return seen is not None and seen >= until + late
    return False


def finishable(closed: Collection[str], shards: Shards) -> set[str]:
    """Those of the closed shards of which ListShards shows the end, and who follows them.

    A parent that was finished before its children are known could be forgotten before they are
    found, and what they lose in that time would go unnoticed.
    """
    followed = {parent for shard in shards.values() for parent in shard.parents} if closed else set()
    return {s for s in followed.intersection(closed) if s in shards and shards[s].ending_sequence is not None}


def unlisted(cursors: Cursors, shards: Shards) -> list[str]:
    """Shards that a listing lacks, though they may have unread records: those that are not finished, and the parents of
    new ones. Kinesis has dropped them, or the listing is older than one before.
    """
    parents = {parent for shard_id, shard in shards.items() if shard_id not in cursors for parent in shard.parents}
    gone = {cursor.shard_id for cursor in vanished(cursors, shards)}
    return sorted(gone | parents - cursors.keys() - shards.keys())


def vanished(cursors: Cursors, shards: Shards) -> list[Waiting | Unpinned | Reading]:
    """Cursors of shards that were not finished, but that Kinesis has dropped with all their records."""
    return [c for shard_id, c in cursors.items() if shard_id not in shards and not isinstance(c, Finished)]


def place(cursor: Unpinned | Reading) -> IteratorStart:
    """Where reading goes on."""
    return cursor.position if isinstance(cursor, Reading) else cursor.since


def search_from(cursor: Unpinned | Reading) -> IteratorStart:
    """Where to look for the next record: at the place itself, or past a long time in which nothing was there.

    Kinesis answers for a silence with empty pages, each of a quarter of an hour or so: days of it take minutes.
    """
    if isinstance(cursor, Unpinned):
        seen, begins = cursor.unread_since, cursor.since
    elif cursor.tip_seen is not None:
        seen, begins = cursor.tip_seen, cursor.arrival
    else:
        return cursor.position
    return seen - _BEFORE_SEEN if begins is None or seen - begins > _LONG_SILENCE else place(cursor)


def unread_since(cursor: Cursor) -> datetime | None:
    """No unread record of the shard arrived before this time; None: there is none left."""
    return None if isinstance(cursor, Finished) else cursor.unread_since


def retained_since(now: datetime, retention: timedelta) -> datetime:
    """Records that arrived before this time may be gone. `now` may lag behind by the resolution of `Date`."""
    return now + _DATE_RESOLUTION - retention


def trim_at(known: Trim | None, now: datetime, retention: timedelta) -> Trim:
    """What may be trimmed by now. Kinesis brings nothing back when its retention is raised: whenever that was since the
    plan before, until now the shorter one counts.

    Args:
        known: at the plan before; None: there was none.
        now: Kinesis time.
        retention: of the stream at present.
    """
    floor = retained_since(now, min(retention, known.retention if known else retention))
    return Trim(retention, max(floor, known.floor) if known else floor)


def may_be_trimmed(cursor: Cursor, floor: datetime) -> bool:
    """Whether an unread record may have been trimmed. `floor`: see `retained_since`."""
    bound = unread_since(cursor)
    return bound is not None and bound < floor


def witness(cursor: Unpinned | Reading, floor: datetime, now: datetime) -> int | None:
    """The last record that was read, if it has to be asked for; None: nothing is in doubt, or it could not tell.

    By the retention that is known, nothing behind it is trimmed yet. If that was shorter while nobody looked, and some
    is, this record is gone as well, since records are trimmed from the front.

    Args:
        cursor: behind it.
        floor: see `retained_since`.
        now: Kinesis time.
    """
    if isinstance(cursor, Unpinned) or not cursor.position.after or cursor.arrival < floor:
        return None
    return cursor.position.sequence if may_be_trimmed(cursor, retained_since(now, LEAST_RETENTION)) else None


def out_of_reach(cursors: Iterable[Cursor], trim: Trim) -> Cursor | None:
    """One of the cursors that nobody may be able to go on from: of records behind it, the first may be trimmed by the
    time that they are read."""
    return next((cursor for cursor in cursors if may_be_trimmed(cursor, trim.floor + _TRIM_MARGIN)), None)


def behind_losses(cursors: Cursors, losses: Iterable[Loss], left: Mapping[str, datetime]) -> dict[str, Cursor]:
    """Move behind what is lost where the plan takes nothing: it would be lost once more with the next one.

    Args:
        cursors: with the plan.
        losses: of the plan.
        left: by shard, arrival of the oldest record that is there.
    """
    moved: dict[str, Cursor] = dict(cursors)
    for loss in losses:
        cursor = cursors.get(loss.shard_id)
        if isinstance(cursor, Reading) and cursor.position == loss.start and loss.end is not None:
            moved[loss.shard_id] = Reading(loss.shard_id, loss.end, left[loss.shard_id], None)
    return moved


def worth_writing(old: Iterable[Cursor], new: Iterable[Cursor], interval: timedelta) -> bool:
    """Whether cursors changed so much that they should be written down without a batch of records."""
    before, now = {c.shard_id: c for c in old}, {c.shard_id: c for c in new}
    return before.keys() != now.keys() or any(_moved(before[s], now[s], interval) for s in now)


def _moved(old: Cursor, new: Cursor, interval: timedelta) -> bool:
    if type(old) is not type(new):
        return True
    if isinstance(old, Reading) and isinstance(new, Reading) and old.position != new.position:
        return True
    was, is_now = unread_since(old), unread_since(new)
    return was is not None and is_now is not None and is_now - was > interval
