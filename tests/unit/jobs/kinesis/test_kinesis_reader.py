"""The reader's rules, on a stream in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from lakestream.errors import DataLossError, ExpiredIteratorError, KinesisAnswerError, RangeError
from lakestream.kinesis import KinesisSettings, RangeReader, RecordPage
from lakestream.kinesis.port import IteratorStart
from lakestream.model import Finding, Loss, ShardRange, after, at
from lakestream.testing.fake_kinesis import FakeKinesis, FakeRecord

S0 = "shardId-000000000000"


def filled(count: int = 10) -> tuple[FakeKinesis, list[FakeRecord]]:
    stream = FakeKinesis()
    records = []
    for number in range(count):
        records.append(stream.put(S0, b"%d" % number))
        stream.advance(timedelta(seconds=1))
    return stream, records


def range_of(first: FakeRecord, last: FakeRecord, **changes: object) -> ShardRange:
    """From one record through another."""
    piece = ShardRange(
        S0, at(first.sequence), after(last.sequence), first.sequence, first.arrival, last.arrival, False, 0, 0
    )
    return replace(piece, **changes)  # type: ignore[arg-type]


def reader_of(stream: FakeKinesis, *, skip: bool = False) -> RangeReader:
    settings = KinesisSettings("fake", "eu-west-1", skip_losses=skip, patience=30.0)
    return RangeReader(stream, settings, sleep=stream.sleep, monotonic=stream.monotonic)


def numbers(parts: Iterator[pa.RecordBatch | Finding]) -> list[int]:
    batches = [part for part in parts if not isinstance(part, Finding)]
    return [int(value) for batch in batches for value in batch.column("data").to_pylist()]


def losses(parts: Iterator[pa.RecordBatch | Finding]) -> list[Loss]:
    """What was skipped, told behind all records."""
    *_, last = parts
    assert isinstance(last, Finding)
    return list(last.losses)


@pytest.mark.parametrize("page_size", [1, 3, 10_000])
@pytest.mark.parametrize("empty_pages", [0, 2])
def test_a_range_is_read_exactly(page_size: int, empty_pages: int) -> None:
    stream, records = filled()
    stream.page_size, stream.empty_pages = page_size, empty_pages
    assert numbers(reader_of(stream).read(range_of(records[2], records[6]))) == [2, 3, 4, 5, 6]
    until = range_of(records[2], records[6], end=at(records[6].sequence))
    assert numbers(reader_of(stream).read(until)) == [2, 3, 4, 5]


def test_reading_ends_with_the_last_record_without_another_call() -> None:
    stream, records = filled()
    stream.page_size = 5
    assert len(numbers(reader_of(stream).read(range_of(records[0], records[9])))) == 10
    assert stream.calls["GetRecords"] == 2


def test_a_range_that_was_planned_behind_an_earlier_one_starts_at_its_first_record() -> None:
    stream, records = filled()
    piece = range_of(records[3], records[4], start=after(records[2].sequence))
    assert numbers(reader_of(stream).read(piece)) == [3, 4]


def test_an_expired_iterator_goes_on_behind_the_last_record() -> None:
    stream, records = filled()
    stream.page_size = 4
    batches = reader_of(stream).read(range_of(records[0], records[9]))
    assert numbers(iter([next(batches)])) == [0, 1, 2, 3]
    stream.advance(timedelta(minutes=6))
    stream.failures.append(ExpiredIteratorError("again"))
    assert numbers(batches) == [4, 5, 6, 7, 8, 9]


def test_iterators_that_are_expired_as_soon_as_they_are_given_end_the_reading() -> None:
    stream, records = filled()
    piece = range_of(records[0], records[9])
    stream.failures.extend(ExpiredIteratorError("at once") for _ in range(3))
    before = stream.time
    assert len(numbers(reader_of(stream).read(piece))) == 10
    assert stream.time - before == timedelta(seconds=0.4)  # no busy loop of two calls
    stream.failures.extend(ExpiredIteratorError("at once") for _ in range(4))
    with pytest.raises(ExpiredIteratorError, match="at once"):
        numbers(reader_of(stream).read(piece))


def going_back(stream: FakeKinesis, times: int) -> None:
    """The next pages begin with the shard's oldest record, wherever they were asked for."""
    ask = stream.get_shard_iterator
    left = iter(range(times))

    def get_shard_iterator(shard_id: str, start: IteratorStart) -> str:
        return ask(shard_id, start if next(left, None) is None else None)

    stream.get_shard_iterator = get_shard_iterator  # type: ignore[method-assign]


def test_records_that_lie_before_where_they_were_asked_for() -> None:
    stream, records = filled()
    piece = range_of(records[2], records[6])
    going_back(stream, 3)
    assert numbers(reader_of(stream).read(piece)) == [2, 3, 4, 5, 6]
    going_back(stream, 4)
    with pytest.raises(KinesisAnswerError, match=f"{S0}, read from {piece.start}: .*back to.* {records[0].sequence}"):
        numbers(reader_of(stream).read(piece))


def test_an_answer_that_makes_no_sense_is_told_with_its_place() -> None:
    stream, records = filled()
    stream.page_size = 3
    stream.failures.extend([None, KinesisAnswerError.of("GetRecords", "Data is None")])
    with pytest.raises(KinesisAnswerError, match=f"{S0}, read from after {records[4].sequence}: .*: Data is None"):
        numbers(reader_of(stream).read(range_of(records[2], records[9])))


def test_the_end_of_a_closed_shard() -> None:
    stream, records = filled()
    stream.page_size = 3
    stream.split(S0)
    end = after(stream.shards[S0].ending_sequence or 0)
    closing = range_of(records[7], records[9], end=end, closes_shard=True)
    assert numbers(reader_of(stream).read(closing)) == [7, 8, 9]


def test_an_empty_last_page_of_a_closed_shard() -> None:
    stream, records = filled()
    stream.page_size = 3
    batches = reader_of(stream).read(range_of(records[7], records[9], end=after(10**55), closes_shard=True))
    first = next(batches)
    stream.split(S0)
    assert numbers(iter([first])) == [7, 8, 9]
    assert numbers(batches) == []


def test_a_closed_shard_that_ends_before_an_ordinary_range_does() -> None:
    stream, records = filled()
    stream.split(S0)
    with pytest.raises(RangeError, match=f"{S0}: the shard's records end after {records[9].sequence}"):
        numbers(reader_of(stream).read(range_of(records[7], records[9], end=at(10**55))))


def test_the_tip_before_the_end_is_waited_for_and_then_an_error() -> None:
    stream, records = filled()
    began = stream.time
    with pytest.raises(RangeError, match="before the planned end"):
        numbers(reader_of(stream).read(range_of(records[7], records[9], end=at(10**55))))
    assert timedelta(seconds=30) <= stream.time - began < timedelta(seconds=31)


def test_a_record_that_shows_up_late_ends_the_wait() -> None:
    stream, records = filled()
    piece = range_of(records[7], records[9], end=after(10**55))
    batches = reader_of(stream).read(piece)
    assert numbers(iter([next(batches)])) == [7, 8, 9]
    stream.put(S0, b"10")
    assert numbers(iter([next(batches)])) == [10]


def trimmed(stream: FakeKinesis, count: int) -> None:
    stream.shards[S0].trimmed = count


def test_a_trimmed_first_record_is_loss() -> None:
    stream, records = filled()
    trimmed(stream, 4)
    piece = range_of(records[2], records[6])
    with pytest.raises(DataLossError, match=f"{S0}: records from {piece.start} to at {records[4].sequence} were.*skip"):
        numbers(reader_of(stream).read(piece))
    assert numbers(reader_of(stream, skip=True).read(piece)) == [4, 5, 6]
    lost = Loss(S0, piece.start, at(records[4].sequence), records[2].arrival, records[4].arrival)
    assert losses(reader_of(stream, skip=True).read(piece)) == [lost]


@pytest.mark.parametrize("left", [7, 10])
def test_a_range_that_was_trimmed_altogether(left: int) -> None:
    """Records behind the range are left, or none at all."""
    stream, records = filled()
    trimmed(stream, left)
    piece = range_of(records[2], records[6])
    with pytest.raises(DataLossError, match=f"{records[2].sequence}"):
        numbers(reader_of(stream).read(piece))
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert (lost.start, lost.end, lost.since) == (piece.start, piece.end, records[2].arrival)
    assert lost.until > records[6].arrival


def test_a_range_that_ends_at_the_first_record_left_tells_of_all_before_it() -> None:
    """As where the retention was lowered, and raised again, while nobody looked: what ends the range by time is gone as
    well, and the plan ends it at what is left."""
    stream, records = filled()
    trimmed(stream, 8)
    piece = range_of(records[2], records[4], end=at(records[8].sequence))
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert (lost.start, lost.end) == (piece.start, piece.end)
    assert (lost.since, lost.until) == (records[2].arrival, records[8].arrival)


def test_of_a_range_that_ended_at_a_record_which_is_gone_as_well_all_is_told() -> None:
    """When that one arrived nobody knows any more."""
    stream, records = filled()
    trimmed(stream, 10)
    piece = range_of(records[2], records[4], end=at(records[8].sequence))
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert lost.end == piece.end
    assert lost.until > records[9].arrival


@pytest.mark.parametrize("is_left", [False, True])
def test_what_ends_a_range_is_asked_for_where_that_has_been_given_up(is_left: bool) -> None:
    """Behind a first page that is empty."""
    stream, records = filled()
    stream.retention = timedelta(hours=24)
    stream.advance(timedelta(hours=25))
    new = stream.put(S0, b"new") if is_left else None
    stream.empty_pages = 1
    piece = range_of(records[2], records[4], end=at(records[8].sequence))
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert (lost.end, lost.since) == (piece.end, records[2].arrival)
    assert lost.until == (new.arrival if new else stream.time)


def test_what_is_older_than_the_stream_keeps_it_is_not_waited_for() -> None:
    stream, records = filled()
    stream.retention = timedelta(hours=24)
    stream.advance(timedelta(hours=25))
    begun = stream.monotonic()
    assert losses(reader_of(stream, skip=True).read(range_of(records[2], records[6])))
    assert stream.monotonic() - begun < 5
    # Of younger records Kinesis might still come to tell, and of all that it keeps by now.
    stream.retention = timedelta(days=7)
    begun = stream.monotonic()
    assert losses(reader_of(stream, skip=True).read(range_of(records[2], records[6])))
    assert stream.monotonic() - begun >= 30
    stream.retention = timedelta(hours=24)
    stream.advance(timedelta(hours=-5))
    begun = stream.monotonic()
    assert losses(reader_of(stream, skip=True).read(range_of(records[2], records[6])))
    assert stream.monotonic() - begun >= 30


def test_nor_is_the_way_gone_through_the_silence_behind_it() -> None:
    """A week without records is 672 calls, a fifth of a second apart, for each shard and batch."""
    stream, records = filled()
    stream.retention = timedelta(hours=24)
    stream.advance(timedelta(hours=25))
    stream.put(S0, b"10")
    stream.empty_pages = 672
    piece = range_of(records[2], records[6])
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert (lost.start, lost.end) == (piece.start, piece.end)
    assert stream.calls["GetRecords"] == 1
    # What Kinesis may still have is looked for.
    stream.retention = timedelta(days=7)
    assert losses(reader_of(stream, skip=True).read(piece))
    assert stream.calls["GetRecords"] > 672


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("trimmed_by_then", "lost"), [(2, []), (3, []), (7, [4, 5, 6]), (9, [4, 5, 6, 7, 8]), (10, [4, 5, 6, 7, 8, 9])]
)
def test_trimming_that_overtakes_who_reads(trimmed_by_then: int, lost: list[int], closed: bool) -> None:
    """The oldest records go one by one while a range is read: what has gone by the second page is known by its gap."""
    stream, records = filled()
    stream.retention = timedelta(hours=24)
    stream.page_size = 4
    if closed:
        stream.split(S0)
        end = after(stream.shards[S0].ending_sequence or 0)
        piece = range_of(records[0], records[9], end=end, closes_shard=True)
    else:
        piece = range_of(records[0], records[9])
    stream.time = records[4].arrival + stream.retention - timedelta(minutes=4)
    for skip in (False, True):
        trimmed(stream, 0)
        parts = reader_of(stream, skip=skip).read(piece)
        assert numbers(iter([next(parts)])) == [0, 1, 2, 3]
        trimmed(stream, trimmed_by_then)
        if lost and not skip:
            with pytest.raises(DataLossError, match=f"{S0}: records from after {records[3].sequence} to "):
                list(parts)
            continue
        rest = list(parts)
        assert numbers(iter(rest)) == [n for n in range(4, 10) if n not in lost]
        found = losses(iter(rest)) if lost else []
        assert [n for n in range(10) for loss in found if loss.start <= at(records[n].sequence) < loss.end] == lost  # type: ignore[operator]


def test_a_retention_that_is_lowered_while_a_range_is_read_hides_no_loss() -> None:
    stream, records = filled()
    stream.retention = timedelta(days=7)
    stream.advance(timedelta(days=3))
    left = stream.put(S0, b"left")
    stream.page_size = 4
    piece = range_of(records[0], left)
    reader = RangeReader(
        stream,
        KinesisSettings("fake", "eu-west-1", retention=stream.retention),
        sleep=stream.sleep,
        monotonic=stream.monotonic,
    )
    parts = reader.read(piece)
    assert numbers(iter([next(parts)])) == [0, 1, 2, 3]
    stream.retention = timedelta(days=1)
    stream.advance(timedelta(seconds=1))
    with pytest.raises(DataLossError, match=f"reading was overtaken behind {records[3].sequence}"):
        list(parts)


def test_a_shard_that_is_gone_is_loss() -> None:
    stream, records = filled()
    stream.shards[S0].is_listed = False
    piece = range_of(records[2], records[6])
    with pytest.raises(DataLossError, match=f"{S0}: records from {piece.start} to {piece.end} .*: the shard is gone"):
        numbers(reader_of(stream).read(piece))
    (lost,) = losses(reader_of(stream, skip=True).read(piece))
    assert (lost.start, lost.end) == (piece.start, piece.end)


def test_no_more_is_asked_for_than_the_range_should_hold() -> None:
    stream, records = filled(1000)
    limits: list[int] = []
    ask = stream.get_records

    def get_records(iterator: str, limit: int) -> RecordPage:
        limits.append(limit)
        return ask(iterator, limit)

    stream.get_records = get_records  # type: ignore[method-assign]
    piece = range_of(records[0], records[499], expected_records=200)
    assert len(numbers(reader_of(stream).read(piece))) == 500
    # 200 were expected; the first page shows that there are 250 more.
    assert limits[0] == 250
    assert sum(limits) < 700
    limits.clear()
    assert len(numbers(reader_of(stream).read(replace(piece, expected_records=0)))) == 500
    assert limits == [10_000]
