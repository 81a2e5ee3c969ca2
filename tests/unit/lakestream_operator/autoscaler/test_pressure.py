"""When executors have too much to do, or soon will."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from lakestream_api import Scaling
from lakestream_operator.autoscaler import BatchLimits
from lakestream_operator.autoscaler.demand import demand, target_of
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.pressure import Pressure, pressure_of
from lakestream_operator.autoscaler.rates import Rate
from lakestream_operator.autoscaler.state import BatchModel

SPEC = Scaling(max_executors=1_000, max_lag=timedelta(seconds=60))
LIMITS = BatchLimits(interval=10.0, max_records=1 << 30, max_bytes=1 << 40, cores=2)
MODEL = BatchModel(fixed=1.0, fetch=40e-6, write=60e-6, is_sure=True)
"""An executor does 20,000 records/s; `L` is 26 s."""
FULL_TEN = 200_000.0


def load(rate: Rate, lag: float = 20.0) -> Load:
    return Load(rate, record_bytes=250.0, lag=lag, backlog=0.0, open_shards=10_000, shard_load=0.0)


def pressure(one: Load, *, rising: bool = False) -> Pressure:
    """On ten executors."""
    return pressure_of(SPEC, LIMITS, MODEL, one, executors=10, delay=50.0, rising=rising)


def is_high(found: Pressure) -> bool:
    return found.behind or found.busy > found.high


def test_a_load_that_is_established_is_high_at_full_executors_before_there_is_a_backlog() -> None:
    assert not is_high(pressure(load(Rate(0.95 * FULL_TEN, None, 0.03))))
    assert is_high(pressure(load(Rate(0.99 * FULL_TEN, None, 0.03))))


def test_noise_that_makes_nobody_late_is_nothing() -> None:
    burst = Rate(1.2 * FULL_TEN, None, 0.1, recent=1.2 * FULL_TEN, established=False)
    assert not is_high(pressure(load(burst, lag=30.0)))
    # A sixth of 50 s will be added to it until executors that are asked for now have worked on a batch.
    assert is_high(pressure(load(burst, lag=41.0)))
    assert is_high(pressure(load(burst), rising=True)), "a step just taken was too small"


def test_a_leap_is_high_if_it_is_one_by_much() -> None:
    assert not is_high(pressure(load(Rate(0.8 * FULL_TEN, 1.2 * FULL_TEN, 0.03, established=False))))
    assert is_high(pressure(load(Rate(0.8 * FULL_TEN, 1.4 * FULL_TEN, 0.03, established=False))))


@pytest.mark.parametrize(("lag", "times"), [(48.0, 1.0), (54.0, 1.1), (108.0, 2.0)])
def test_a_backlog_is_read_within_the_lag_goal_as_far_as_it_is_one(lag: float, times: float) -> None:
    found = pressure(load(Rate(0.88 * FULL_TEN, None, 0.03), lag=lag + 1e-6))
    assert found.behind
    assert found.reading == pytest.approx(times * 0.88 * FULL_TEN, rel=1e-3)


def test_who_has_time_to_spare_works_a_pause_off_and_is_behind_beyond_the_goal_only() -> None:
    easy = Rate(0.85 * FULL_TEN, None, 0.03)
    assert not pressure(load(easy, lag=59.0)).behind
    late = pressure(load(easy, lag=66.0))
    assert late.behind
    assert late.reading == pytest.approx(1.1 * 0.85 * FULL_TEN, rel=1e-3)
    # The last minute and a half may be another load already, and a leap is one.
    assert pressure(load(replace(easy, recent=0.88 * FULL_TEN), lag=50.0)).behind
    assert pressure(load(replace(easy, leap=0.85 * FULL_TEN), lag=50.0)).behind


def test_noise_takes_utilization_and_no_more_than_it_has_to() -> None:
    shares = [target_of(SPEC, LIMITS, MODEL, load(Rate(1.0, None, noise))) for noise in (0.0, 0.03, 0.13, 0.3)]
    assert shares[:2] == [0.9, 0.9]
    # The random walk's share of the time above the 22 s that are left is a minute a week.
    assert math.exp(-2 * (1 / shares[2] - 1) * 22 / (60 * 0.13**2)) * 7 * 24 * 60 == pytest.approx(1.24, rel=0.01)
    assert shares[3] < shares[2] < 0.85


def test_what_is_unexplained_adds_to_the_steady_need_and_not_to_a_backlogs() -> None:
    one = load(Rate(100_000.0, None, 0.03))
    steady = demand(SPEC, LIMITS, MODEL, one, rate=100_000.0, extra=0.5)
    assert steady.steady == pytest.approx(1.5 * 5 / 0.9)
    assert steady.wanted == 9
    both = demand(SPEC, LIMITS, MODEL, one, rate=100_000.0, reading=140_000.0, extra=0.5)
    assert both == steady


def test_compaction_takes_slots_that_batches_do_not_have() -> None:
    one = load(Rate(100_000.0, None, 0.03))
    compacted = replace(MODEL, services=50e-6)
    assert demand(SPEC, LIMITS, compacted, one, rate=100_000.0).steady == pytest.approx(1.5 * 5 / 0.9)


def test_silence_after_a_load_calls_for_nothing() -> None:
    """Though a batch, if there were one, would take 20 core-seconds however small it is, and minutes are far apart."""
    silent = load(Rate(0.0, None, 3.0), lag=0.0)
    assert demand(SPEC, LIMITS, replace(MODEL, write_base=20.0), silent, rate=0.0).wanted == 1


def test_who_is_behind_reads_what_comes_by_now() -> None:
    rising = Rate(0.8 * FULL_TEN, None, 0.03, recent=0.9 * FULL_TEN, latest=FULL_TEN)
    assert pressure(load(rising, lag=48.1)).reading == pytest.approx(FULL_TEN, rel=0.01)
    assert pressure(load(rising, lag=20.0)).reading == pytest.approx(0.8 * FULL_TEN)
