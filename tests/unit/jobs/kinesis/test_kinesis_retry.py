"""Backoff: what passes is waited out, what does not is raised at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakestream.errors import (
    ExpiredIteratorError,
    KinesisAnswerError,
    KinesisRejectedError,
    KinesisUnavailableError,
    ThrottledError,
)
from lakestream.kinesis.retry import Backoff


class Time:
    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.bounds: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def uniform(self, low: float, high: float) -> float:
        assert low == 0
        self.bounds.append(high)
        return high

    def backoff(self, patience: float = 60.0) -> Backoff:
        return Backoff(patience, self.sleep, lambda: self.now, self.uniform)


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = [error] * times

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    return attempt


@pytest.mark.parametrize("error", [ThrottledError("t"), KinesisUnavailableError("u")])
def test_what_passes_is_repeated(error: Exception) -> None:
    time = Time()
    assert time.backoff().call(failing(8, error)) == "done"
    assert time.bounds == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert time.waits == time.bounds


def test_a_shard_that_is_blocked_is_asked_when_it_is_free() -> None:
    time = Time()
    time.now = 100.0
    assert time.backoff().call(failing(1, ThrottledError("t")), not_before=104.7) == "done"
    assert time.waits == pytest.approx([4.7])
    # Then somebody else was quicker; what is no throttling knows of no time; and one that has come counts no more.
    assert time.backoff().call(failing(3, ThrottledError("t")), not_before=105.0) == "done"
    assert time.waits[1:] == pytest.approx([0.3, 0.2, 0.4])
    assert time.backoff().call(failing(1, KinesisUnavailableError("u")), not_before=200.0) == "done"
    assert time.backoff().call(failing(1, ThrottledError("t")), not_before=99.0) == "done"
    assert time.waits[4:] == [0.1, 0.1]


@pytest.mark.parametrize("error", [KinesisRejectedError("r"), ExpiredIteratorError("e"), ValueError()])
def test_the_rest_is_raised_at_once(error: Exception) -> None:
    time = Time()
    with pytest.raises(type(error)):
        time.backoff().call(failing(1, error))
    assert time.waits == []


@pytest.mark.parametrize("times", [3, 4])
def test_what_makes_no_sense_is_believed_after_a_few_tries(times: int) -> None:
    time = Time()
    attempt = failing(times, KinesisAnswerError("n"))
    if times < 4:
        assert time.backoff().call(attempt) == "done"
    else:
        with pytest.raises(KinesisAnswerError):
            time.backoff().call(attempt)
    assert len(time.waits) == 3


def test_patience_ends() -> None:
    time = Time()
    with pytest.raises(ThrottledError):
        time.backoff(patience=10.0).call(failing(1000, ThrottledError("t")))
    assert time.now <= 10.0
    assert len(time.waits) == 6


def test_what_lasts_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    backoff = time.backoff(patience=120.0)
    assert backoff.call(failing(5, KinesisUnavailableError("GetRecords on http://k: refused"))) == "done"
    assert caplog.messages == []
    assert backoff.call(failing(20, KinesisUnavailableError("GetRecords on http://k: refused"))) == "done"
    assert backoff.call(failing(8, KinesisUnavailableError("GetRecords on http://k: refused"))) == "done"
    assert caplog.messages == [
        f"asked again and again for {seconds} s, in vain: GetRecords on http://k: refused" for seconds in (11, 41, 71)
    ]
