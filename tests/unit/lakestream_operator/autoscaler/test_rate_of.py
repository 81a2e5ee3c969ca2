"""The rate, against its definition written down plainly."""

import math
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakestream_operator.autoscaler.rates import Rate, rate_of
from lakestream_operator.autoscaler.state import BatchModel, Sample

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@st.composite
def samples(draw: st.DrawFn) -> list[Sample]:
    """Batches of a load that leaps and rests, of records of several sizes; of some it is not known when they came."""
    rates = st.sampled_from([0.0, 900.0, 1000.0, 1100.0, 3000.0])
    spans = st.sampled_from([0.0, 1.2, 10.0, 10.0, 60.0])
    found = []
    for rate, span in draw(st.lists(st.tuples(rates, spans), max_size=80)):
        records = rate * span * draw(st.sampled_from([0.97, 1.0, 1.0, 1.04]))
        size = draw(st.sampled_from([250.0, 250.0, 1000.0]))
        found.append(Sample(NOW, draw(st.integers(0, 3)), records, records * size, span))
    return found


def mean(arrived: Sequence[tuple[float, float]], seconds: float) -> float:
    """Over the newest that together span so many seconds, or all."""
    fewest = next((n for n in range(1, len(arrived)) if sum(span for _, span in arrived[-n:]) >= seconds), len(arrived))
    newest = list(reversed(arrived[-fewest:]))
    return sum(records for records, _ in newest) / sum(span for _, span in newest)


def noise_of(arrived: Sequence[tuple[float, float]]) -> float:
    minutes: list[list[tuple[float, float]]] = [[]]
    for one in arrived:
        minutes[-1].append(one)
        if sum(span for _, span in minutes[-1]) >= 60:
            minutes.append([])
    rates = [sum(records for records, _ in minute) / sum(span for _, span in minute) for minute in minutes[:-1]]
    apart = [2 * abs(one - other) / (one + other) for one, other in pairwise(rates) if one + other > 0]
    return min(max(1.4826 * statistics.median(apart), 0.01), 0.3) if len(apart) >= 5 else 0.05


def leap_of(arrived: Sequence[tuple[float, float]], batches: Sequence[int], noise: float) -> float | None:
    """The mean since the load leapt up: over the last samples that are above what came before 90 s."""
    lasts = [n for n in range(1, len(arrived) + 1) if sum(span for _, span in reversed(arrived[-n:])) >= 90]
    start = len(arrived) - min([*lasts, len(arrived)]) or 1
    usual = mean(arrived[:start], 300)
    high = (1 + max(0.15, 5 * noise)) * usual
    above = [(records / span - usual) / max(high - usual, 1e-9) for records, span in arrived]
    first = next((n for n in range(len(arrived), start, -1) if above[n - 1] <= 1), start)
    votes = sum(max(1, batches[n]) * min(above[n], 2) for n in range(first, len(arrived)))
    if votes < 2:
        return None
    return max(mean(arrived[begin:], math.inf) for begin in {first, min(first + 1, len(arrived) - 1)})


@given(samples(), st.floats(0.0, 1.0))
def test_it_is_the_mean_over_the_longest_time_that_agrees_with_the_last(given: list[Sample], by_bytes: float) -> None:
    model = BatchModel(1.0, 3e-5, 6e-5, size=250.0, byte_share=by_bytes)
    arrived = [(model.alike(sample.records, sample.bytes), sample.span) for sample in given if sample.span > 0]
    rate: Rate | None = rate_of(given, model)
    if not arrived:
        assert rate is None
        return
    assert rate is not None
    noise, recent = noise_of(arrived), mean(arrived, 90)
    rated, long = recent, False
    for minutes, before in ((3, None), (5, 3), (10, 5), (15, 10), (25, 15)):
        one = mean(arrived, 60 * minutes)
        agrees = abs(one - recent) <= 2.5 * noise * one
        if not agrees or (before and abs(one - rated) > 2.5 * noise * one * math.sqrt(1 / before)):
            break
        rated, long = one, minutes >= 5
    assert (rate.mean, rate.noise, rate.recent) == (rated, noise, recent)
    assert rate.latest == mean(arrived, 30)
    assert rate.established == (long and rate.leap is None and sum(span for _, span in arrived) >= 300)
    assert rate.leap == leap_of(arrived, [sample.batches for sample in given if sample.span > 0], noise)


def test_a_minute_of_the_load_before_it_fell_is_not_taken_for_noise() -> None:
    fell = [Sample(NOW, 1, 60 * rate, 60 * rate * 250, 60.0) for rate in (2500.0, *[970.0, 1030.0] * 7)]
    rate = rate_of(fell, BatchModel(1.0, 3e-5, 6e-5, size=250.0))
    assert rate is not None
    # Over 15 minutes it is 1,100, which would not be far from the last as these minutes go.
    assert abs(rate.mean - 1000) < 20
    assert rate.established
