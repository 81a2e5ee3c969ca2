"""How much a batch may cover, and who reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis.admission import Admission, admit, assign_tasks
from lakestream.kinesis.rates import Rates
from lakestream.kinesis.settings import PlannerSettings
from lakestream.model import BatchCommit, ShardRange, ShardStats, SinkCommit, at

T = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
MIB = 1024 * 1024
SETTINGS = PlannerSettings("TRIM_HORIZON", max_records=100_000, max_bytes=64 * MIB)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def commit(records: int, size: int, span: float, shard_id: str = "s-0") -> BatchCommit:
    stats = ShardStats(shard_id, records, size, T, T)
    return BatchCommit(0, 1, T, T, T, T + seconds(span), False, records, size, 0, None, (), (stats,) if records else ())


@pytest.mark.parametrize(("shards", "expected"), [(1, 64.0), (4, 16.0), (1000, 0.064), (100_000, 0.001), (0, 64.0)])
def test_the_first_slice_fits_even_full_shards(shards: int, expected: float) -> None:
    assert Rates().slice(SETTINGS, shards) == seconds(expected)


def test_a_heartbeat_says_nothing() -> None:
    heartbeat = BatchCommit(0, 1, T, T, None, T, True, 0, 0, 0, None, ())
    assert Rates().observe(heartbeat) == Rates()


def test_a_steady_backlog_comes_to_fill_the_batches() -> None:
    rates, covered = Rates(), Rates().slice(SETTINGS, 4)
    for _ in range(10):
        n = int(500 * covered.total_seconds())
        rates = rates.observe(commit(n, n * 100, covered.total_seconds()))
        covered = rates.slice(SETTINGS, 4)
    assert 500 * covered.total_seconds() == pytest.approx(100_000, rel=0.01)


def test_bytes_bound_a_batch_of_large_records() -> None:
    rates = Rates().observe(commit(100, 100 * MIB, 100.0))
    assert rates.slice(SETTINGS, 4) == seconds(64.0)


def test_aggregates_hold_more_records_than_a_shard_may_take() -> None:
    # 50,000 user records per second in 4 shards: only KPL aggregates make that.
    rates = Rates().observe(commit(800_000, 8 * MIB, 16.0))
    assert rates.slice(SETTINGS, 4) == seconds(2.0)


def test_a_slice_grows_by_steps() -> None:
    """After a quiet night the morning may begin anywhere in the backlog."""
    rates = Rates().observe(commit(1, 100, 20.0))
    assert rates.slice(SETTINGS, 4) == seconds(40.0)
    assert Rates().observe(commit(1, 100, 10_000.0)).slice(SETTINGS, 4) == seconds(256.0)


def taking(records: int, span: float, longest: float, waited: float = 0.0) -> BatchCommit:
    """A batch whose longer stage took so long, apart from what it waited for compaction."""
    sink = SinkCommit(records, 0, seconds={"wait": waited})
    stages = {"plan": 0.1, "fetch": longest / 3, "write": longest + waited}
    return replace(commit(records, records * 100, span), seconds=stages, sink=sink)


def test_a_batch_that_takes_long_is_followed_by_one_that_can_be_done_in_time() -> None:
    steady = Rates().observe(taking(8_000, 10, 8))
    assert steady.slice(SETTINGS, 4) >= seconds(15), "that batch was in time"
    flooded = steady.observe(taking(24_000, 10, 24)).observe(taking(48_000, 20, 48))
    # 1,000 records a second are done, and 2,200 arrive: three times the quickest batch took 24 s.
    assert 24_000 / 2_400 < flooded.slice(SETTINGS, 4).total_seconds() < 24_000 / 2_000


def test_a_batch_for_fewer_slots_is_smaller_and_for_more_it_is_larger() -> None:
    rates = Rates()
    for _ in range(3):
        rates = rates.observe(taking(40_000, 10, 8), tasks=40)
    # 125 records a second and task are done in 24 s at most, and 4,000 arrive.
    assert rates.slice(SETTINGS, 1_000, slots=4) == seconds(24 * 4 * 125 / 4_000)
    assert rates.slice(SETTINGS, 1_000, slots=20) == seconds(24 * 20 * 125 / 4_000)
    assert rates.slice(SETTINGS, 4, slots=20) == seconds(24 * 4 * 125 / 4_000), "a shard is read by one task"


def test_a_batch_that_the_machine_has_held_up_holds_up_no_other() -> None:
    steady = Rates().observe(taking(8_000, 10, 8))
    held_up = steady.observe(taking(100, 10, 50)).observe(taking(8_000, 10, 8))
    assert held_up.slice(SETTINGS, 4) >= seconds(20), "twice the one before"


def test_a_trigger_shorter_than_a_commit_gets_no_smaller_batches() -> None:
    rates = Rates()
    hurried = replace(SETTINGS, interval=seconds(0.2))
    for _ in range(20):
        # Five seconds a batch, however small it is.
        rates = rates.observe(taking(5_000, 5, 5))
    assert rates.slice(hurried, 4) >= seconds(10), "twice the one before"


def test_small_batches_that_a_busy_machine_holds_up_do_not_become_ever_smaller() -> None:
    rates = Rates()
    hurried = replace(SETTINGS, interval=seconds(0.2))
    for number in range(20):
        # Twenty records in a second; what it takes to write a few is up to the machine.
        rates = rates.observe(taking(20, 1, (5, 13)[number % 2]))
        assert rates.slice(hurried, 4) >= seconds(1.5)


def crowded(
    span: float, longest: float, per_second: int = 1_000, *, caught_up: bool = False, waited: float = 0.0
) -> BatchCommit:
    """A batch of records of 1,000 bytes from two shards, three quarters of them from the one."""
    records = round(per_second * span)
    batch = replace(taking(records, span, longest, waited), bytes=records * 1_000, caught_up=caught_up)
    stats = batch.shards[0]
    full = replace(stats, records=records * 3 // 4, bytes=records * 750)
    rest = replace(stats, shard_id="s-1", records=records // 4, bytes=records * 250)
    return replace(batch, shards=(full, rest))


LARGE = replace(SETTINGS, max_records=10**6, max_bytes=10**9, interval=seconds(2))


def test_a_backlogs_batch_has_what_the_fullest_shard_gives_in_one_answer() -> None:
    # Of 750,000 bytes a second 8 MB, of the 10 MB that one answer has.
    assert Rates().observe(crowded(20, 4), tasks=2).slice(LARGE, 2, slots=2) == seconds(10.666)


def test_a_backlogs_batch_that_is_pushed_has_what_comes_before_the_next_may_be() -> None:
    pushed = replace(LARGE, pushed=True)
    assert Rates().observe(crowded(20, 4), tasks=2).slice(pushed, 2, slots=2) == seconds(16)


def test_at_the_tip_what_a_late_batch_finds_is_one_batch_however_full_a_shard_is() -> None:
    slow = replace(LARGE, interval=seconds(12))
    at_tip, behind = (Rates().observe(crowded(12, 11, caught_up=caught_up), tasks=2) for caught_up in (True, False))
    assert at_tip.slice(slow, 2, slots=2) == seconds(21)
    # 1.5 times what the batch took.
    assert behind.slice(slow, 2, slots=2) == seconds(16.5)


def test_a_batch_whose_work_is_mostly_fixed_covers_more_than_it_takes() -> None:
    # Ten seconds of arrivals would take twelve of work again.
    assert Rates().observe(crowded(20, 12), tasks=2).slice(LARGE, 2, slots=2) == seconds(18)


def test_a_batch_is_not_cut_short_of_a_trigger_intervals_work() -> None:
    # 20 s of arrivals were done in one second: 40 s in an interval.
    assert Rates().observe(crowded(20, 1), tasks=2).slice(LARGE, 2, slots=2) == seconds(40)


@given(
    st.floats(0.2, 60), st.floats(0.05, 0.6), st.integers(1, 2_000), st.integers(1, 64), st.just(0.0) | st.floats(0, 30)
)
def test_a_backlog_is_worked_off_whatever_of_a_batch_is_fixed_or_waited_for(
    fixed: float, share: float, per_second: int, slots: int, waited: float
) -> None:
    """If what arrives in a second is done in less than one, a batch comes to cover more time than it takes.

    Compaction that fails has batches wait for up to 30 s: they grow meanwhile."""
    rates, settings = Rates(), replace(LARGE, max_records=10**9, max_bytes=10**12)
    span, longest = 10.0, fixed + share * 10.0
    for _ in range(40):
        rates = rates.observe(crowded(span, longest, per_second, waited=waited), tasks=min(slots, 2))
        span = rates.slice(settings, 2, slots).total_seconds()
        longest = fixed + share * span
    assert span > longest + waited


def test_what_a_batch_waits_for_is_not_its_work() -> None:
    waited = Rates().observe(taking(8_000, 10, 8)).observe(taking(8_000, 10, 8, waited=100))
    assert waited.slice(SETTINGS, 4) == Rates().observe(taking(8_000, 10, 8)).slice(SETTINGS, 4)


def test_many_quiet_shards_do_not_hold_a_batch_back() -> None:
    rates = Rates()
    for _ in range(30):
        rates = rates.observe(commit(1, 100, rates.slice(SETTINGS, 10_000).total_seconds()))
    assert rates.slice(SETTINGS, 10_000) == seconds(60.0)


def test_recent_batches_count_more() -> None:
    rates = Rates()
    for n in (1000, 1000, 1000, 3000):
        rates = rates.observe(commit(n, n, 10.0))
    assert 150 < rates.records / rates.seconds < 300


def test_what_is_expected_of_a_shard() -> None:
    rates = Rates().observe(commit(500, 1, 10.0, "hot"))
    assert rates.expect("hot", seconds(2)) == 100
    assert rates.expect("never seen", seconds(2)) == 0


def test_admission() -> None:
    settle = seconds(1)
    assert admit([], T, settle, seconds(5)) == Admission(T - settle, is_limited=False)
    assert admit([T - seconds(3)], T, settle, seconds(5)) == Admission(T - settle, is_limited=False)
    backlog = [T - seconds(50), T - seconds(60)]
    assert admit(backlog, T, settle, seconds(5)) == Admission(T - seconds(55), is_limited=True)
    assert admit([T + seconds(9)], T, settle, seconds(5)) == Admission(T - settle, is_limited=False)


def piece(number: int, expected: int) -> ShardRange:
    return ShardRange(f"s-{number:03d}", at(1), at(2), 1, T, T, False, expected, 0)


@given(st.lists(st.integers(0, 10_000), max_size=50), st.integers(1, 10), st.integers(1, 5_000))
def test_tasks_are_numbered_and_even(expected: list[int], slots: int, worth: int) -> None:
    laid_out = assign_tasks([piece(i, n) for i, n in enumerate(expected)], slots, worth)
    assert [r.shard_id for r in laid_out] == [f"s-{i:03d}" for i in range(len(expected))]
    loads: dict[int, int] = {}
    for r in laid_out:
        loads[r.task] = loads.get(r.task, 0) + max(r.expected_records, 1)
    assert sorted(loads) == list(range(len(loads)))
    assert len(loads) <= slots
    if loads:
        assert max(loads.values()) - min(loads.values()) <= max(*expected, 1, 1)


@pytest.mark.parametrize(
    ("expected", "tasks"), [([10] * 8, 1), ([1000] * 8, 1), ([5000] * 8, 4), ([0] * 8, 4), ([9999, 1], 1), ([0], 1)]
)
def test_small_batches_make_fewer_tasks(expected: list[int], tasks: int) -> None:
    laid_out = assign_tasks([piece(i, n) for i, n in enumerate(expected)], 4, 10_000)
    assert len({r.task for r in laid_out}) == tasks
