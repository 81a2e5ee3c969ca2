"""What batches cost, by batches whose cost is known."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakestream_api import CoreSeconds, StageSeconds
from lakestream_operator.autoscaler import BatchLimits, ScalingState, ScalingWindow
from lakestream_operator.autoscaler.estimate import fit
from lakestream_operator.autoscaler.samples import take_in
from lakestream_operator.autoscaler.state import BatchModel
from lakestream_operator.testing.documents import batch_of

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = BatchLimits(interval=10.0, max_records=1 << 30, max_bytes=1 << 40, cores=2)
FETCH, WRITE = 30e-6, 60e-6


def model_of(sizes: list[int], fetch_base: float, write_base: float, noise: float, seed: int = 1) -> BatchModel:
    """Of batches of these sizes, one after the other."""
    rng = random.Random(seed)
    batches = []
    for number, size in enumerate(sizes):
        fetch = (fetch_base + FETCH * size) * rng.uniform(1 - noise, 1 + noise)
        write = (write_base + WRITE * size) * rng.uniform(1 - noise, 1 + noise)
        at = START + timedelta(seconds=10 * (number + 1))
        update = {
            "bytes": 250 * size,
            "seconds": StageSeconds(plan=0, fetch=fetch / 8, write=write / 8, commit=0),
            "executors": 4,
            "core_seconds": CoreSeconds(fetch=fetch, write=write),
        }
        batches.append(batch_of(number, at, records=size, open_shards=64).model_copy(update=update))
    state, now = ScalingState(), START
    for begin in range(0, len(batches), 6):
        seen = tuple(batches[begin : begin + 6])
        now = seen[-1].finished_at
        window = ScalingWindow(LIMITS, seen, reported_at=now)
        state = fit(take_in(state, window, now), window, now)
    assert state.model is not None
    return state.model


def work(model: BatchModel, records: float) -> float:
    return model.fetching(records) + model.writing(records)


bases = st.floats(0.0, 4.0)


@given(bases, bases, st.integers(1, 1000), st.integers(2_000, 20_000))
def test_what_a_batch_takes_however_small_it_is_is_told_from_what_its_records_take(
    fetch_base: float, write_base: float, seed: int, small: int
) -> None:
    """After a quiet time and a busy one, a load ten times as high as the latter is told to a fifth."""
    sizes = [small] * 20 + [8 * small] * 20
    model = model_of(sizes, fetch_base, write_base, noise=0.05, seed=seed)
    for records in (small, 8 * small, 80 * small):
        truth = fetch_base + write_base + (FETCH + WRITE) * records
        assert abs(work(model, records) / truth - 1) < 0.2


@given(bases, bases, st.integers(1, 1000), st.floats(0.0, 0.15))
def test_batches_of_one_size_do_not_tell_it(fetch_base: float, write_base: float, seed: int, noise: float) -> None:
    """What cannot be told is not guessed: all of it goes by the record."""
    model = model_of([10_000, 11_000] * 15, fetch_base, write_base, noise, seed)
    assert model.base == 0
    truth = fetch_base + write_base + (FETCH + WRITE) * 10_500
    assert abs(work(model, 10_500) / truth - 1) < 0.2


@pytest.mark.parametrize("times", [1.3, 2.0, 2.9])
def test_batches_of_less_than_three_times_the_size_do_not_tell_it(times: float) -> None:
    model = model_of([10_000, int(times * 10_000)] * 15, fetch_base=4.0, write_base=4.0, noise=0.05)
    assert model.base == 0


@given(bases, bases, st.integers(1, 1000))
@settings(max_examples=settings().max_examples // 5)
def test_it_is_remembered_when_batches_are_of_one_size_again(fetch_base: float, write_base: float, seed: int) -> None:
    """To within what noise makes of one small batch: of 1,500 draws by at most 2.5 % of it, at a noise of 3 %."""
    assume(fetch_base + write_base > 1)
    noise = 0.03
    sizes = [5_000] * 15 + [50_000] * 15
    told = model_of(sizes, fetch_base, write_base, noise, seed)
    later = model_of(sizes + [50_000] * 180, fetch_base, write_base, noise, seed)
    small = fetch_base + write_base + (FETCH + WRITE) * 5_000
    assert abs(later.base - told.base) < 2 * noise * small
    truth = fetch_base + write_base + (FETCH + WRITE) * 500_000
    assert abs(work(later, 500_000) / truth - 1) < 0.15


@given(st.lists(st.integers(1, 1_000_000), min_size=1, max_size=30), bases, bases, st.integers(1, 1000))
def test_no_cost_is_negative_and_none_beyond_what_was_seen(
    sizes: list[int], fetch_base: float, write_base: float, seed: int
) -> None:
    model = model_of(sizes, fetch_base, write_base, noise=0.1, seed=seed)
    assert min(model.fetch, model.write, model.fetch_base, model.write_base) >= 0
    cheapest = fetch_base + write_base + (FETCH + WRITE) * min(sizes)
    assert model.base <= 1.1 * cheapest * (1 + 1e-9)


@given(st.integers(1, 1000), st.floats(0.0, 0.15))
def test_noise_alone_makes_no_fixed_cost(seed: int, noise: float) -> None:
    model = model_of([10_000] * 20 + [60_000] * 20, 0.0, 0.0, noise, seed)
    assert model.base <= 0.1 * (FETCH + WRITE) * 10_000 or noise > 0.1
    assert abs(work(model, 500_000) / ((FETCH + WRITE) * 500_000) - 1) < 0.15


def test_what_compaction_takes_is_spread_over_the_batches_that_it_is_for() -> None:
    batches = []
    for number in range(30):
        # Every tenth batch a run begins, which takes three batches' time.
        services = 12.0 if number % 10 in {0, 1, 2} else 0.0
        at = START + timedelta(seconds=10 * (number + 1))
        update = {
            "bytes": 250 * 100_000,
            "seconds": StageSeconds(plan=0, fetch=1, write=2, commit=0),
            "executors": 4,
            "core_seconds": CoreSeconds(fetch=3.0, write=6.0, services=services),
        }
        batches.append(batch_of(number, at, records=100_000, open_shards=64).model_copy(update=update))
    now = batches[-1].finished_at
    window = ScalingWindow(LIMITS, tuple(batches), reported_at=now)
    state = fit(take_in(ScalingState(), window, now), window, now)
    assert state.model is not None
    assert state.model.services == pytest.approx(9 * 12.0 / (30 * 100_000))
    assert state.model.write == pytest.approx(6.0 / 100_000)
