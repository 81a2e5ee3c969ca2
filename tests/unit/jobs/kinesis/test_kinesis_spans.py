"""What is taken of a span: cases beside what `tests/properties/test_span_histories.py` looks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakestream.kinesis import PlannerSettings, StreamPlanner
from lakestream.model import BatchCommit, BatchPlan, Loss, Portion, ShardStats, Span, SpanDue, SpanProgress, Taken
from lakestream.testing.fake_kinesis import START, FakeKinesis
from lakestream.testing.logs import plan_of

A = "shardId-000000000000"
MINUTE = timedelta(minutes=1)


def planner(stream: FakeKinesis, *, may_lose: bool = False) -> StreamPlanner:
    settings = PlannerSettings("LATEST", skip_losses=may_lose, threads=1)
    return StreamPlanner(stream, settings, slots=lambda: 4, sleep=stream.sleep)


def due(since: float, until: float, progress: SpanProgress | None = None) -> SpanDue:
    """From one minute to another."""
    return SpanDue(1, Span(START + since * MINUTE, START + until * MINUTE), progress)


def put_each_minute(stream: FakeKinesis, minutes: int) -> None:
    for _ in range(minutes):
        stream.put(stream.open_shards()[0], b"x")
        stream.advance(MINUTE)


def taken_of(portion: Portion | None) -> Taken:
    assert portion is not None
    return portion.taken


def span_of(portion: Portion | None) -> SpanProgress:
    span = taken_of(portion).span
    assert span is not None
    return span


def test_it_waits_until_the_span_has_passed() -> None:
    stream = FakeKinesis()
    put_each_minute(stream, 2)
    spans = planner(stream)
    assert spans.portion(due(0, 3), None, 1) is None
    stream.advance(MINUTE)
    assert spans.portion(due(0, 3), None, 1) is None, "a record may still come that arrived before"
    stream.advance(timedelta(seconds=1))
    assert spans.portion(due(0, 3), None, 50_000) is not None


def test_a_span_without_records_is_done_at_once_also_in_shards_that_rest() -> None:
    stream = FakeKinesis(2)
    stream.split(A)
    stream.advance(2 * MINUTE)
    portion = planner(stream).portion(due(0, 1), None, 50_000)
    assert portion == Portion((), Taken(1, 1, 1, span_of(portion)))
    assert span_of(portion).cursors == ()


@pytest.mark.parametrize("later", [25, 40])
def test_nothing_is_said_to_be_lost_of_a_child_whose_parent_was_read_beyond_the_span(later: int) -> None:
    stream = FakeKinesis(retention=timedelta(hours=1))
    for _ in range(2):
        stream.advance(5 * MINUTE)
        stream.put(A, b"x")
        stream.advance(5 * MINUTE)
    child, _ = stream.split(A)
    stream.put(child, b"x")
    stream.advance(20 * MINUTE)
    progress = span_of(planner(stream).portion(due(0, 10), None, 50_000))
    assert progress.cursors, "the children are to come"
    stream.advance(later * MINUTE)  # meanwhile the beginning of the span, which was read, is trimmed, or all of it
    portion = planner(stream).portion(due(0, 10, progress), None, 50_000)
    assert (span_of(portion).lost, taken_of(portion).parts) == ((), 1)


def test_nothing_is_said_to_be_lost_of_a_shard_that_appears_meanwhile() -> None:
    stream = FakeKinesis(2, retention=timedelta(hours=1))
    stream.advance(120 * MINUTE)  # the stream is older than what it keeps
    put_each_minute(stream, 20)
    stream.put("shardId-000000000001", b"x")
    spans = planner(stream)
    first = spans.portion(due(120, 130), None, 1)
    assert not taken_of(first).is_done
    stream.split("shardId-000000000001")  # of which the span has nothing
    stream.advance(MINUTE)
    progress = span_of(first)
    for _ in range(20):
        portion = planner(stream).portion(due(120, 130, progress), None, 1)
        assert span_of(portion).lost == ()
        if taken_of(portion).is_done:
            break
        progress = span_of(portion)
    assert taken_of(portion).parts == 1


@pytest.mark.parametrize("may_lose", [True, False])
def test_what_expires_while_it_waits_is_skipped_and_told_or_ends_the_request(may_lose: bool) -> None:
    stream = FakeKinesis(retention=timedelta(hours=1))
    put_each_minute(stream, 70)
    portion = planner(stream, may_lose=may_lose).portion(due(0, 65), None, 50_000)
    (loss,) = span_of(portion).lost
    assert (loss.shard_id, loss.since) == (A, START)
    assert loss.until <= START + 11 * MINUTE
    assert span_of(portion).failed != may_lose
    if not may_lose:
        assert portion == Portion((), Taken(1, 0, 0, span_of(portion)))


def test_a_span_ends_of_which_the_rest_is_trimmed_between_two_batches() -> None:
    """What is left of the shard lies behind it: the planner must not look for the rest again and again."""
    stream = FakeKinesis(2)
    for _ in range(30):
        for shard in stream.open_shards():
            stream.put(shard, b"x")
        stream.advance(MINUTE)
    progress = span_of(planner(stream, may_lose=True).portion(due(0, 20), None, 1))
    assert progress.cursors, "the rest is to come"
    stream.advance(timedelta(hours=25))
    for shard in stream.open_shards():
        stream.put(shard, b"y")
    stream.advance(MINUTE)
    portion = planner(stream, may_lose=True).portion(due(0, 20, progress), None, 1)
    assert (taken_of(portion).parts, [loss.shard_id for loss in span_of(portion).lost]) == (1, stream.open_shards())


def test_a_closed_shard_that_is_lost_waits_for_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = FakeKinesis()
    put_each_minute(stream, 30)
    progress = span_of(planner(stream, may_lose=True).portion(due(0, 20), None, 1))
    stream.advance(timedelta(hours=25))
    stream.split(A)
    stream.advance(MINUTE)
    full = FakeKinesis.list_shards
    monkeypatch.setattr(FakeKinesis, "list_shards", lambda self: full(self)[:1])
    spans = planner(stream, may_lose=True)
    assert spans.portion(due(0, 20, progress), None, 1) is None
    monkeypatch.undo()
    portion = spans.portion(due(0, 20, progress), None, 1)
    assert (taken_of(portion).parts, span_of(portion).lost[0].shard_id) == (1, A)


def test_what_a_reader_has_lost_ends_the_request_as_well() -> None:
    stream = FakeKinesis()
    put_each_minute(stream, 10)
    spans = planner(stream)
    progress = span_of(spans.portion(due(0, 9), None, 1))
    lost = Loss(A, None, None, START, START)
    behind = Taken(1, 0, 1, SpanProgress(progress.cursors, progress.trim, progress.reached, (lost,), 3))
    commit = BatchCommit.of(plan_of(0, 1), epoch=1, committed_at=START)
    spans.observe(replace(commit, taken=behind, of_span=True))
    portion = spans.portion(due(0, 9, progress), None, 1)
    assert taken_of(portion).of == 0
    assert span_of(portion).failed


def test_portions_grow_with_what_is_learned_of_the_traffic() -> None:
    stream = FakeKinesis()
    for _ in range(3600):
        stream.put(A, b"x")
        stream.advance(timedelta(seconds=1))
    stream.advance(MINUTE)
    spans, progress, sizes, last = planner(stream), None, [], None
    for batch in range(60):
        portion = spans.portion(due(0, 60, progress), None, 10_000)
        assert portion is not None
        pieces = [piece for task in portion.tasks for piece in task]
        (piece,) = pieces
        seconds = (piece.end_arrival - piece.first_arrival).total_seconds()  # type: ignore[union-attr]
        sizes.append(round(seconds))
        plan = BatchPlan(
            batch, 1, stream.time, None, stream.time, True, (), (), parts=portion.tasks, taken=portion.taken
        )
        stats = ShardStats(A, round(seconds), 1, piece.first_arrival, piece.end_arrival)  # type: ignore[union-attr]
        last = BatchCommit.of(plan, epoch=1, committed_at=stream.time, shards=(stats,)).behind(last)
        spans.observe(last)
        if portion.taken.is_done:
            break
        progress = portion.taken.span
    else:
        pytest.fail(f"too many portions: {sizes}")
    assert sizes == sorted(sizes[:-1]) + sizes[-1:]
    assert sizes[1] >= 2 * sizes[0]


def test_what_is_asked_for_tells_nothing_of_what_the_stream_gives_next() -> None:
    stream = FakeKinesis()
    settings = PlannerSettings("TRIM_HORIZON", max_records=5_000, threads=1)
    put_each_minute(stream, 20)
    one, other = (StreamPlanner(stream, settings, slots=lambda: 4, sleep=stream.sleep) for _ in range(2))
    first = one.plan(batch=0, epoch=1, cursors=(), trim=None)
    assert first is not None
    stats = ShardStats(A, 5, 1, START, START)
    streamed = replace(BatchCommit.of(first, epoch=1, committed_at=START, shards=(stats,)), horizon=START + 9 * MINUTE)
    of_span = replace(streamed, of_span=True, taken=Taken(1, 0, 1, SpanProgress(reached=START + 9 * MINUTE)))
    one.observe(of_span)
    expected = other.plan(batch=1, epoch=1, cursors=first.cursors, trim=first.trim)
    assert one.plan(batch=1, epoch=1, cursors=first.cursors, trim=first.trim) == expected
    one.observe(streamed)
    assert one.plan(batch=1, epoch=1, cursors=first.cursors, trim=first.trim) != expected, "as that of the stream does"
