"""Hypothesis strategies for the model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from hypothesis import strategies as st

from lakestream.model import (
    BatchPlan,
    Cursor,
    Definition,
    FileEntry,
    FilePart,
    Filter,
    Finished,
    Format,
    HashKeys,
    Loss,
    Piece,
    Position,
    Reading,
    RecordFormat,
    Restore,
    ShardRange,
    ShardStats,
    SpanProgress,
    Standing,
    Taken,
    Trim,
    Unpinned,
    Waiting,
    after,
    at,
)

sequences = st.integers(min_value=0, max_value=10**56)
positions = st.builds(Position, sequences, st.booleans())
times = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
some_times = st.none() | times
counts = st.integers(min_value=0, max_value=2**53)
hash_keys = st.builds(HashKeys, st.integers(0, 2**127), st.integers(2**127, 2**128 - 1))

filters = st.builds(Filter, st.lists(st.text(), min_size=1).map(tuple), st.frozensets(st.text()))
definitions = st.builds(
    Definition,
    *(st.text(), st.none() | st.text(), st.none() | st.text(), st.integers(min_value=1, max_value=2**53)),
    filters=st.lists(filters, max_size=2).map(tuple),
    record_format=st.sampled_from(RecordFormat),
)
files = st.builds(FileEntry, st.text(min_size=1), counts, counts, st.text())
file_parts = st.builds(
    lambda path, kind, start, length, *more: FilePart(path, kind, start, start + length, *more),
    *(st.text(min_size=1), st.sampled_from(Format), counts, st.integers(1, 2**53), counts, counts),
    *(st.text(), times, st.lists(st.tuples(st.text(), st.text())).map(tuple), st.booleans()),
)


restores = st.builds(Restore, st.integers(1, 2**53), st.text(min_size=1), counts, st.booleans())


def shard_ids(number: int) -> str:
    return f"shardId-{number:012d}"


losses = st.builds(Loss, st.builds(shard_ids, counts), st.none() | positions, st.none() | positions, times, times)
trims = st.builds(Trim, st.timedeltas(timedelta(hours=1), timedelta(days=365)), times)


@cache  # to make a strategy takes longer than to draw from it
def idle_cursors(shard_id: str) -> st.SearchStrategy[Cursor]:
    """Cursors of a shard that has no range in the batch."""
    return st.one_of(
        st.builds(Waiting, st.just(shard_id), some_times, times),
        st.builds(Unpinned, st.just(shard_id), some_times, times),
        st.builds(Reading, st.just(shard_id), st.builds(at, sequences), times, st.none()),
        st.builds(Reading, st.just(shard_id), st.builds(after, sequences), times, some_times),
        st.just(Finished(shard_id)),
    )


@st.composite
def ranges(draw: st.DrawFn, shard_id: str, task: int) -> ShardRange:
    """A range with its parts in order."""
    first, arrival = draw(sequences), draw(times)
    start = draw(st.sampled_from([at(first), at(max(0, first - 3)), after(max(0, first - 1))]))
    closes = draw(st.booleans())
    end = (after if closes else at)(draw(st.integers(first + 1, 10**57)))
    span = draw(st.timedeltas(timedelta(0), timedelta(days=1)))
    keys = draw(st.none() | hash_keys)
    return ShardRange(
        shard_id, min(start, at(first)), end, first, arrival, arrival + span, closes, draw(counts), task, keys
    )


def _cursor_behind(piece: ShardRange) -> Cursor:
    return (
        Finished(piece.shard_id) if piece.closes_shard else Reading(piece.shard_id, piece.end, piece.end_arrival, None)
    )


@st.composite
def progress_of_requests(draw: st.DrawFn) -> Taken:
    """How far a request may be."""
    of = draw(st.integers(1, 2**53))
    span = draw(st.none() | spans())
    return Taken(draw(st.integers(1, 2**53)), draw(st.integers(0, of)), of, span)


@st.composite
def spans(draw: st.DrawFn) -> SpanProgress:
    """How far a span may be read."""
    cursors = [draw(idle_cursors(shard_ids(number))) for number in range(draw(st.integers(0, 3)))]
    lost = draw(st.lists(losses, max_size=2))
    trim = draw(st.none() | trims)
    return SpanProgress(tuple(cursors), trim, draw(st.none() | times), tuple(lost), draw(counts), draw(st.booleans()))


@st.composite
def plans(draw: st.DrawFn, max_shards: int = 5) -> BatchPlan:
    """Plans with ranges in some shards, and cursors of all kinds in the others."""
    pieces: list[ShardRange] = []
    cursors: list[Cursor] = []
    for number in range(draw(st.integers(0, max_shards))):
        if draw(st.booleans()):
            pieces.append(draw(ranges(shard_ids(number), len(pieces))))
            cursors.append(_cursor_behind(pieces[-1]))
        else:
            cursors.append(draw(idle_cursors(shard_ids(number))))
    taken = draw(st.none() | progress_of_requests())
    kind: st.SearchStrategy[Piece] = draw(st.sampled_from([files, file_parts, ranges(shard_ids(0), 0)]))
    parts = draw(st.lists(st.lists(kind, min_size=1), min_size=1)) if taken and not pieces else []
    since = draw(times)
    ends = taken is not None and not pieces and not parts and draw(st.booleans())
    return BatchPlan(
        batch=draw(counts),
        epoch=draw(counts),
        planned_at=since,
        base=min((piece.first_arrival for piece in pieces), default=None),
        horizon=draw(times),
        caught_up=draw(st.booleans()),
        ranges=tuple(pieces),
        cursors=tuple(cursors),
        losses=tuple(draw(st.lists(losses, max_size=2))),
        trim=draw(st.none() | trims),
        definition=draw(st.none() | definitions),
        parts=tuple(map(tuple, parts)),
        taken=taken,
        ends_request=ends,
        read_from=draw(st.none() | times),
        restore=draw(st.none() | restores) if not pieces and not parts and not ends else None,
    )


def standings() -> st.SearchStrategy[Standing]:
    """Where a writer may stand."""
    return plans().map(lambda plan: Standing(plan.batch, plan.planned_at, plan.horizon, plan.cursors, plan.taken))


def stats_of(plan: BatchPlan) -> st.SearchStrategy[tuple[ShardStats, ...]]:
    """Stats of every shard that has a range."""
    return st.tuples(
        *(
            st.builds(ShardStats, st.just(piece.shard_id), counts, counts, times, times, st.none() | counts)
            for piece in plan.ranges
        )
    )
