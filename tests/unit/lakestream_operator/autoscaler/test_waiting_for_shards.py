"""A shard gives up to 10 MB at once, and is paid off at 2 MB a second by all who read it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakestream_api import BatchSummary, CoreSeconds, Scaling, StageSeconds
from lakestream_operator.autoscaler import BatchLimits, ScalingState, ScalingWindow
from lakestream_operator.autoscaler.demand import demand
from lakestream_operator.autoscaler.effect import judge
from lakestream_operator.autoscaler.estimate import Load, fit
from lakestream_operator.autoscaler.rates import Rate
from lakestream_operator.autoscaler.samples import take_in, waiting
from lakestream_operator.autoscaler.state import BatchModel, Step
from lakestream_operator.testing.documents import batch_of

FETCH = 30e-6
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = BatchLimits(interval=10.0, max_records=1 << 30, max_bytes=1 << 40, cores=2)
LOAD = Load(Rate(2e5, None, 0.01), record_bytes=250.0, lag=0.0, backlog=0.0, open_shards=64, shard_load=0.0)


@pytest.mark.parametrize(
    ("reading", "consumers", "first", "between"),
    [
        pytest.param(4.2, 1, 0.0, 0.0, id="one answer has it all"),
        pytest.param(7.0, 1, 0.0, 2.0, id="10 MB come at once, and 4 MB take 2 s"),
        pytest.param(8.4, 2, 4.2, 0.0, id="the other may have asked before"),
        pytest.param(14.0, 2, 5.0, 4.0, id="and for more than an answer has"),
        pytest.param(4.2, 0, 0.0, 4.2, id="what is pushed comes evenly"),
    ],
)
def test_a_batch_waits_for_what_was_given_before_its_last_answer(
    reading: float, consumers: int, first: float, between: float
) -> None:
    assert waiting(reading, consumers) == pytest.approx((first, between))


def wanted(shard_load: float, consumers: int, reading: float = 0.0) -> int:
    load = replace(LOAD, shard_load=shard_load, consumers=consumers)
    model = BatchModel(1.0, 40e-6, 60e-6)
    return demand(Scaling(max_executors=100), LIMITS, model, load, rate=2e5, reading=reading).wanted


def test_a_single_writer_needs_no_executors_to_wait_for_what_comes_at_once() -> None:
    assert wanted(0.45, 1) == wanted(0.0, 1)
    assert wanted(0.45, 1, reading=2.1e5) == wanted(0.0, 1, reading=2.1e5)


def test_two_writers_wait_for_each_other_and_longest_who_is_behind() -> None:
    assert wanted(0.0, 2) < wanted(0.9, 2) < wanted(0.9, 2, reading=2.1e5)
    assert wanted(0.9, 2, reading=2.1e5) > 1.3 * wanted(0.0, 2, reading=2.1e5)


def batch(number: int, waits: float, executors: int = 8) -> BatchSummary:
    """Two million records, of which each shard gives 7.8 MB, and for which all tasks wait for so many seconds."""
    fetch = 2e6 * FETCH + 2 * executors * waits
    return batch_of(number, NOW + timedelta(seconds=10 * number), records=2_000_000, open_shards=64).model_copy(
        update={
            "bytes": 500_000_000,
            "largest_shard_bytes": 7_812_500,
            "seconds": StageSeconds(plan=0, fetch=fetch / executors / 2, write=40 / executors, commit=0),
            "executors": executors,
            "core_seconds": CoreSeconds(fetch=fetch, write=80.0),
        }
    )


def after(batches: list[BatchSummary], consumers: int, step: Step | None = None) -> ScalingState:
    state = ScalingState(step=step)
    for one in batches:
        window = ScalingWindow(LIMITS, (one,), reported_at=one.finished_at, consumers=consumers)
        state = fit(take_in(state, window, one.finished_at), window, one.finished_at)
    return state


@pytest.mark.parametrize("waits", [0.0, 4.0])
def test_what_records_cost_is_told_without_what_tasks_wait(waits: float) -> None:
    """At first nobody reads the stream just before us."""
    batches = [batch(number, waits if number >= 20 else 0.0) for number in range(100)]
    model = after(batches, consumers=2).model
    assert model is not None
    assert model.fetch == pytest.approx(FETCH)


def test_a_step_among_batches_that_may_have_waited_is_not_judged() -> None:
    """Twice the slots that wait look like records that cost twice as much."""
    begin = NOW + timedelta(seconds=200)
    batches = [batch(number, 0.5) for number in range(20)] + [batch(number, 4.0, 16) for number in range(20, 40)]
    state = after(batches, 2, Step(begin, 8, 16, 2e5))
    found, verdict = judge(state, LOAD, batches[-1].finished_at)
    assert verdict is None
    assert found.step is None


def test_a_single_writers_step_is_judged_though_its_shards_are_almost_full() -> None:
    begin = NOW + timedelta(seconds=200)
    batches = [batch(number, 0.0) for number in range(20)] + [batch(number, 0.0, 16) for number in range(20, 40)]
    dearer = [
        one.model_copy(update={"core_seconds": CoreSeconds(fetch=120.0, write=160.0)}) if one.executors == 16 else one
        for one in batches
    ]
    _, verdict = judge(after(dearer, 1, Step(begin, 8, 16, 2e5)), LOAD, batches[-1].finished_at)
    assert verdict is not None
