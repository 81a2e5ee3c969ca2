"""What is remembered of batches is little, however short they are, and adds up to what there was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakestream_operator.autoscaler import ScalingState
from lakestream_operator.autoscaler.inputs import BatchLimits, ScalingWindow
from lakestream_operator.autoscaler.samples import take_in
from lakestream_operator.autoscaler.state import LimitReason, Recommendation, Sample, ScalingCondition
from lakestream_operator.testing.documents import batch_of, worked

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 256 * 1024
"""Of all annotations of an object."""


@pytest.mark.parametrize("interval", [0.2, 0.5, 1.0])
def test_batches_that_wait_for_a_shard_now_and_then_are_put_together(interval: float) -> None:
    state, records, bound, now = ScalingState(target=1), 0.0, 0.0, BEGIN
    limits, number = BatchLimits(interval, 500_000, 256 << 20, 2), 0
    most = 0
    while now < BEGIN + timedelta(minutes=24):
        batches = []
        for _ in range(round(10 / interval)):
            now += timedelta(seconds=interval)
            full = 2_000_000 if number % 2 else 0
            batch = worked(batch_of(number, now, records=500), 0.2, 1)
            batches.append(batch.model_copy(update={"largest_shard_bytes": full, "arrival_rate": 500 / interval}))
            records, bound, number = records + 500, bound + 500 * (number % 2), number + 1
        state = take_in(state, ScalingWindow(limits, tuple(batches), consumers=2), now)
        most = max(most, len(state.samples))
    assert most <= 350
    assert len(state.to_json()) < LIMIT / 2
    assert sum(sample.records for sample in state.samples) == records
    assert sum(sample.records for sample in state.samples if sample.shard_bound) == bound, "each with its kind"
    assert sum(sample.span for sample in state.samples) == pytest.approx(24 * 60, rel=0.01)
    assert [sample.at for sample in state.samples] == sorted(sample.at for sample in state.samples)


def test_a_few_hundred_samples_stay_as_they_are() -> None:
    samples = tuple(
        Sample(BEGIN + timedelta(seconds=5 * one), 1, 100, 1e4, 4.0, shard_bound=bool(one % 2)) for one in range(290)
    )
    window = ScalingWindow(BatchLimits(5, 500_000, 256 << 20, 2))
    state = take_in(ScalingState(samples=samples), window, BEGIN + timedelta(seconds=5 * 290))
    assert state.samples == samples


def test_what_is_written_fits() -> None:
    samples = tuple(Sample(BEGIN + timedelta(seconds=one), 1, 100 / 3, 1e4 / 3, 4.0) for one in range(20_000))
    state = ScalingState(target=7, samples=samples, recommendations=(Recommendation(BEGIN, 2.5),))
    known = ScalingState.from_json(state.to_json())
    assert len(state.to_json()) < LIMIT / 2 < len(replace(state, samples=samples[:4000]).to_json()) * 4
    assert known.samples
    assert known.samples == samples[-len(known.samples) :], "the newest"
    assert known.recommendations == state.recommendations
    endless = replace(state, condition=ScalingCondition(LimitReason.RESOURCE_STARVED, "x" * LIMIT))
    assert ScalingState.from_json(endless.to_json()) == ScalingState(target=7)
