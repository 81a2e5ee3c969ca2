"""Orders to change the stream's shards: carried out once, and never a matter for ingestion."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from queue import Queue

import pytest

from lakestream.control import Resharder
from lakestream.control.resharding import look
from lakestream.errors import KinesisRejectedError, KinesisUnavailableError, ThrottledError
from lakestream.kinesis import StreamSummary
from lakestream.testing.logs import EPOCH_TIME
from lakestream_api import Resharding


@dataclass
class Stream:
    """A stream of 2 shards; keeps what it is asked for, or fails."""

    is_updating: bool = False
    error: Exception | None = None
    silent: Exception | None = None
    asked: list[int] = field(default_factory=list)

    def describe_stream_summary(self) -> StreamSummary:
        if self.silent is not None:
            raise self.silent
        return StreamSummary("arn:x", EPOCH_TIME, timedelta(days=1), 2, self.is_updating, places_by_key=True)

    def update_shard_count(self, shards: int) -> None:
        self.asked.append(shards)
        if self.error is not None:
            raise self.error


def test_a_stream_that_has_its_shards_is_not_looked_at_again() -> None:
    stream = Stream()
    assert look(stream, 2) == (Resharding(ordered=2, open_shards=2), None)
    assert stream.asked == []


def test_a_stream_with_others_is_asked_for_them_and_looked_at_again_soon() -> None:
    stream = Stream()
    told, again = look(stream, 4)
    assert told == Resharding(ordered=4, open_shards=2, updating=True)
    assert again is not None
    assert again <= timedelta(minutes=1)
    assert stream.asked == [4]


@pytest.mark.parametrize("ordered", [2, 4])
def test_a_stream_being_updated_is_waited_for(ordered: int) -> None:
    stream = Stream(is_updating=True)
    told, again = look(stream, ordered)
    assert (told, stream.asked) == (Resharding(ordered=ordered, open_shards=2, updating=True), [])
    assert again is not None


@pytest.mark.parametrize(
    "error",
    [
        KinesisRejectedError("ValidationException: the stream is in ON_DEMAND mode"),
        ThrottledError("LimitExceededException: 10 times in 24 hours"),
        KinesisRejectedError("AccessDeniedException: is not authorized to perform: kinesis:UpdateShardCount"),
        RuntimeError("a bug"),
    ],
    ids=str,
)
def test_a_refusal_is_told_in_kinesis_words_and_tried_again_much_later(error: Exception) -> None:
    told, again = look(Stream(error=error), 4)
    assert told == Resharding(ordered=4, open_shards=2, problem=str(error))
    assert again is not None
    assert again >= timedelta(minutes=5)


@pytest.mark.parametrize(
    "stream", [Stream(error=KinesisUnavailableError("502")), Stream(silent=KinesisUnavailableError("502"))]
)
def test_a_kinesis_that_does_not_answer_has_not_refused(stream: Stream) -> None:
    told, again = look(stream, 4)
    assert told.problem == ""
    assert again is not None
    assert again <= timedelta(minutes=1)


def test_a_right_to_describe_that_is_missing_is_told() -> None:
    told, _ = look(Stream(silent=KinesisRejectedError("AccessDeniedException")), 4)
    assert told == Resharding(ordered=4, problem="AccessDeniedException")


def test_each_order_is_dealt_with_once_and_its_end_is_told() -> None:
    stream, told = Stream(), Queue[Resharding | None]()
    resharder = Resharder(stream, told.put)
    for _ in range(3):
        resharder.order(4)
    assert told.get(timeout=60) == Resharding(ordered=4, open_shards=2, updating=True)
    resharder.order(3)
    assert told.get(timeout=60) == Resharding(ordered=3, open_shards=2, updating=True)
    resharder.order(None)
    assert told.get(timeout=60) is None
    resharder.close()
    resharder.order(5)
    assert stream.asked == [4, 3]
