"""What `decide_scale` does in each of the situations that it has a rule for."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from lakestream_api import (
    BatchSummary,
    CoreSeconds,
    ExcludedWindow,
    ExecutorsReport,
    FetchedBatch,
    Scaling,
    ScheduledExecutors,
    StageSeconds,
)
from lakestream_operator.autoscaler import (
    BatchLimits,
    LimitReason,
    ScaleDecision,
    ScalingState,
    ScalingWindow,
    decide_scale,
)
from lakestream_operator.autoscaler.release import remember
from lakestream_operator.testing.documents import batch_of

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = BatchLimits(interval=10.0, max_records=1_000_000, max_bytes=1 << 30, cores=2)
SPEC = Scaling(min_executors=1, max_executors=40, target_utilization=0.8, max_lag=timedelta(seconds=60))
COST = 100e-6
"""Core-seconds per record; with 2 cores, an executor does 20,000 records/s."""


class Driver:
    """A driver with a batch every ten seconds, or as soon as the one before is done."""

    def __init__(self, executors: int, spec: Scaling = SPEC) -> None:
        self.spec = spec
        self.now = START
        self.executors = executors
        self.room = 1_000
        """Executors that a quota lets be."""
        self.state = ScalingState()
        self.batches: list[BatchSummary] = []
        self.decisions: list[ScaleDecision] = []
        self.pending_since: datetime | None = None
        self.limits = LIMITS
        self.shards = 1_000
        self.shard_bytes = 0
        self.file_groups = 0
        self.follows = True
        self.behind = 0.0
        self.measures = True
        self.record_bytes = 250
        self.ahead = timedelta(0)
        """What all clocks of the cluster are ahead of Kinesis's."""
        self.cost = COST

    def run(self, seconds: float, rate: float, fixed: float = 0.5) -> ScaleDecision:
        """Batches at a rate, an evaluation every 5 s."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            before = self.batches[-1].finished_at if self.batches else self.now
            records = rate * 10 + self.behind
            slots = min(self.executors * self.limits.cores, self.shards)
            reading = 0.4 * (fixed + self.cost * records / slots)
            writing = 0.6 * (
                fixed + self.cost * records / (min(slots, self.file_groups) if self.file_groups else slots)
            )
            work = reading + writing
            period = max(10.0, work)
            # What comes while a batch runs for longer than the interval waits for the next one.
            self.behind = rate * (period - 10)
            at = before + timedelta(seconds=period)
            self.batches.append(
                batch_of(len(self.batches), at, records=int(records), open_shards=self.shards).model_copy(
                    update={
                        "bytes": int(records) * self.record_bytes,
                        "seconds": StageSeconds(plan=0, fetch=reading, write=writing, commit=0),
                        "executors": self.executors,
                        "lag_seconds": 0.0 if period <= 10 else period,
                        "arrival_rate": rate,
                        "backlog_records": self.behind,
                        "largest_shard_bytes": self.shard_bytes,
                        "file_groups": self.file_groups,
                        "horizon": at - timedelta(seconds=work) - self.ahead,
                        "horizon_age_seconds": work if self.ahead else None,
                        "core_seconds": CoreSeconds(fetch=0.4 * self.cost * records, write=0.6 * self.cost * records)
                        if self.measures
                        else None,
                    }
                )
            )
            while self.now < min(end, self.batches[-1].finished_at):
                self.evaluate()
                self.now += timedelta(seconds=5)
        return self.decisions[-1]

    def stall(self, seconds: float, rate: float) -> None:
        """A batch that takes so long, whatever its tasks take."""
        last = self.batches[-1]
        at = last.finished_at + timedelta(seconds=seconds)
        update = {
            "batch": last.batch + 1,
            "finished_at": at,
            "seconds": StageSeconds(plan=0, fetch=seconds / 2, write=seconds / 2, commit=0),
            "horizon": at - timedelta(seconds=seconds),
        }
        stalled = last.model_copy(update=update)
        self.batches.append(stalled)
        self.behind, self.now = rate * (seconds - 10), at

    def evaluate(self, **changes: object) -> ScaleDecision:
        window = ScalingWindow(
            self.limits,
            tuple(batch for batch in self.batches[-40:] if batch.finished_at <= self.now),
            ExecutorsReport(target=self.executors, registered=self.executors),
            reported_at=self.now,
            pending_since=self.pending_since,
            pending_for="ImagePullBackOff: 401",
        )
        decision = decide_scale(self.spec, replace(window, **changes), self.state, self.now)  # type: ignore[arg-type]
        self.state = decision.state
        self.decisions.append(decision)
        if self.follows:
            self.executors = min(decision.target, self.room)
        return decision

    def idle(self, seconds: float) -> ScaleDecision:
        """Nothing comes; the driver looks, and an evaluation follows, every 15 s."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.now += timedelta(seconds=15)
            self.evaluate(caught_up_at=self.now)
        return self.decisions[-1]

    @property
    def events(self) -> list[str]:
        return [event.reason for decision in self.decisions for event in decision.events]


def fetched_of(batch: int, at: datetime, records: int) -> FetchedBatch:
    """A batch of ten seconds that is not committed yet."""
    return FetchedBatch(batch=batch, fetched_at=at, records=records, bytes=records * 250, slice_seconds=10)


def test_a_load_that_fits_changes_nothing() -> None:
    driver = Driver(10)
    driver.run(3600, 150_000)
    assert {decision.target for decision in driver.decisions} == {10}
    assert driver.events == []


@pytest.mark.parametrize("minutes", [-10, 3, 10])
def test_clocks_of_a_cluster_that_are_off_call_for_nothing(minutes: int) -> None:
    driver = Driver(5)
    driver.ahead = timedelta(minutes=minutes)
    driver.run(1800, 75_000)
    assert {decision.target for decision in driver.decisions} == {5}


def test_three_times_the_load_gets_executors_in_one_step() -> None:
    driver = Driver(5)
    driver.run(900, 75_000)
    assert driver.decisions[-1].target == 5
    driver.run(60, 225_000)
    targets = list(dict.fromkeys(decision.target for decision in driver.decisions))
    # 225,000 records/s are 11.25 executors at work.
    assert targets[:1] == [5]
    assert targets[1] >= 11
    driver.run(1200, 225_000)
    assert 12 <= driver.decisions[-1].target <= 17, "what was added for the backlog is gone with it"
    assert driver.decisions[-1].explanation.startswith("stays at ")


def test_a_lower_utilization_is_kept_from_below_and_from_above() -> None:
    driver = Driver(10, SPEC.model_copy(update={"target_utilization": 0.4}))
    driver.run(900, 80_000)
    assert driver.executors == 10
    driver.run(900, 104_000)
    # 104,000 records/s are 5.2 executors at work, and 13 that work for 40 % of the time.
    assert driver.executors == 13


def test_a_model_that_is_not_sure_of_itself_doubles_at_most() -> None:
    driver = Driver(5)
    driver.measures = False
    driver.run(900, 75_000)
    driver.run(60, 225_000)
    targets = list(dict.fromkeys(decision.target for decision in driver.decisions))
    assert targets[:2] == [5, 10]


def test_what_a_load_that_fell_has_no_use_for_is_kept_for_half_as_long_and_then_as_few_as_will_do() -> None:
    driver = Driver(20)
    driver.run(900, 320_000)
    assert driver.decisions[-1].target == 20
    driver.run(270, 40_000)
    assert driver.decisions[-1].target == 20
    driver.run(900, 40_000)
    assert list(dict.fromkeys(decision.target for decision in driver.decisions)) in ([20, 3], [20, 4, 3], [20, 2])


def test_a_short_spike_is_remembered_for_no_longer_than_it_was() -> None:
    driver = Driver(5)
    driver.run(1500, 75_000)
    driver.run(90, 225_000)
    assert driver.executors > 10
    driver.run(300, 75_000)
    assert driver.executors <= 6


def test_a_need_that_is_remembered_for_days_fits_into_an_annotation() -> None:
    spec = SPEC.model_copy(update={"scale_down_after": timedelta(days=3)})
    state, now = ScalingState(target=12), START
    while now < START + timedelta(days=4):
        state = remember(spec, state, 12.34, now)
        now += timedelta(minutes=1, seconds=1)
    assert state.recommendations[0].at <= now - spec.scale_down_after
    # Of the 256 KiB of all annotations together.
    assert len(state.to_json()) < 32 * 1024


def test_what_arrives_is_seen_before_it_is_committed() -> None:
    driver = Driver(5)
    driver.run(900, 75_000)
    last = driver.batches[-1]
    at = last.finished_at + timedelta(seconds=10)
    fetched = fetched_of(last.batch + 1, at, 2_250_000)
    driver.now = at
    assert driver.evaluate(fetched=fetched).target > 10
    quiet = Driver(5)
    quiet.run(900, 75_000)
    quiet.now = at
    assert quiet.evaluate().target == 5


def test_records_of_another_size_are_not_taken_for_another_load() -> None:
    driver = Driver(5)
    for _ in range(3):
        driver.run(900, 75_000)
        driver.record_bytes, driver.cost = 1_000, 4 * COST
        driver.run(900, 75_000 / 4)
        driver.record_bytes, driver.cost = 250, COST
    # By the third time it is known what goes by the byte.
    late = [decision.target for decision in driver.decisions[-360:]]
    assert max(late) - min(late) <= 2


def test_tasks_that_stand_still_now_and_then_get_executors_to_spare() -> None:
    driver = Driver(5)
    driver.run(900, 80_000)
    calm = driver.executors
    for _ in range(6):
        # Core-seconds are what they were; the batch takes a minute.
        driver.stall(60.0, 80_000)
        driver.run(200, 80_000)
    assert driver.executors > calm
    assert driver.state.unexplained > 0


def test_executors_that_pauses_nearly_make_late_are_given_back_to_where_there_is_time_to_spare() -> None:
    calm, paused = Driver(7), Driver(7)
    for _ in range(6):
        calm.run(270, 75_000)
        paused.run(240, 75_000)
        paused.stall(30.0, 75_000)
    assert (calm.executors, paused.executors) == (5, 6)
    paused.run(1200, 75_000)
    assert paused.executors == 5


def test_a_silent_driver_keeps_its_executors() -> None:
    driver = Driver(20)
    driver.run(900, 20_000)
    target = driver.decisions[-1].target
    silent_since = driver.now
    for _ in range(200):
        driver.now += timedelta(seconds=15)
        decision = driver.evaluate(reported_at=silent_since)
    assert decision.target == target
    assert "last report is" in decision.explanation


def test_an_idle_stream_is_not_a_silent_driver() -> None:
    driver = Driver(20)
    driver.run(300, 20_000)
    assert driver.idle(3000).target == 1


def test_what_was_added_stays_for_ten_minutes_unless_the_load_falls_by_a_quarter() -> None:
    driver = Driver(5)
    driver.run(900, 75_000)
    driver.run(300, 225_000)
    added = driver.executors
    raised = driver.state.changed_at
    assert added >= 12
    assert raised is not None
    fell = Driver(5)
    fell.run(900, 75_000)
    fell.run(300, 225_000)
    driver.run(1200, 190_000)
    # As long as the load was high, five minutes, and what it takes to see that it is so no longer.
    fell.run(330, 75_000)
    assert fell.executors <= added / 2
    fell.run(900, 75_000)
    assert 11 <= driver.executors < added
    assert driver.state.changed_at is not None
    assert driver.state.changed_at - raised >= timedelta(minutes=10)
    assert fell.executors <= 6


def test_one_of_three_executors_that_is_not_needed_is_no_fall_by_a_quarter() -> None:
    driver = Driver(3)
    driver.run(900, 34_000)
    assert driver.executors == 3
    # 2.1 executors were called for, and 1.9 are.
    driver.run(540, 31_000)
    assert driver.executors == 3
    driver.run(600, 31_000)
    assert driver.executors == 2


def test_nothing_is_given_back_while_the_load_rises_to_what_takes_it_again() -> None:
    driver = Driver(10)
    driver.run(300, 137_000)
    for minute in range(15):
        driver.run(60, 137_000 + 2_000 * minute)
    assert {decision.target for decision in driver.decisions} == {10}, "165,000 records/s take ten"
    even = Driver(10)
    even.run(1200, 138_000)
    assert even.executors == 9
    almost = Driver(10)
    almost.run(1200, 143_000)
    assert almost.executors == 10, "nine would have just enough to do, and be too few with the next noise"


def test_what_was_added_stays_for_ten_minutes_though_records_become_cheaper() -> None:
    driver = Driver(5)
    driver.run(900, 75_000)
    driver.run(120, 225_000)
    added = driver.executors
    assert added >= 12
    driver.cost = 0.6 * COST
    driver.run(480, 225_000)
    assert driver.executors == added
    driver.run(600, 225_000)
    assert driver.executors < added


def test_load_after_a_night_of_silence_is_no_backlog_and_what_it_costs_is_known() -> None:
    driver = Driver(8)
    driver.run(600, 140_000)
    assert driver.idle(4 * 3600).target == 1
    at = driver.now
    fetched = fetched_of(driver.batches[-1].batch + 1, at, 1_400_000)
    driver.now += timedelta(seconds=5)
    decision = driver.evaluate(fetched=fetched, caught_up_at=at - timedelta(seconds=10))
    assert "behind" not in decision.explanation
    # Seven work on what comes; by the time that they do, there will be a backlog.
    assert 8 <= decision.target <= 14, "in one step"


def test_a_stream_that_went_idle_behind_a_backlog_gives_its_executors_back() -> None:
    driver = Driver(8)
    driver.run(300, 120_000)
    last = driver.batches[-1]
    late = last.finished_at + timedelta(seconds=45)
    update = {"batch": last.batch + 1, "finished_at": late, "lag_seconds": 45, "backlog_records": 5e6}
    driver.batches.append(last.model_copy(update=update))
    driver.now = late
    assert "5,000,000 records behind" in driver.evaluate().explanation
    assert driver.idle(3000).target == 1


@pytest.mark.parametrize("after", [10, 30])
def test_executors_of_a_stream_that_goes_idle_are_kept_no_longer_than_the_spec_says(after: int) -> None:
    driver = Driver(8, SPEC.model_copy(update={"scale_down_after": timedelta(seconds=after)}))
    driver.run(75, 140_000)
    assert driver.decisions[-1].target == 8
    ended = driver.now
    while driver.decisions[-1].target > 1:
        decision = driver.idle(15)
        assert driver.now - ended <= timedelta(minutes=3), decision.explanation
    # Five samples, one in 15 s, tell a rest from a gap; each of three steps down leaves half.
    assert driver.now - ended >= timedelta(seconds=45)


def test_executors_of_a_stream_that_goes_idle_are_given_back_however_noisy_it_was() -> None:
    driver = Driver(2, SPEC.model_copy(update={"scale_down_after": timedelta(seconds=30)}))
    for _ in range(10):
        driver.run(60, 26_000)
        driver.run(60, 17_500)
    assert driver.decisions[-1].target == 2
    assert driver.idle(180).target == 1


def test_executors_of_a_stream_that_goes_idle_are_kept_for_five_minutes_by_default() -> None:
    driver = Driver(8)
    driver.run(600, 140_000)
    ended = driver.now
    while driver.decisions[-1].target == 8:
        driver.idle(15)
    assert timedelta(minutes=4) <= driver.now - ended <= timedelta(minutes=8)


def test_a_step_up_at_the_end_of_a_load_waits_for_no_batch() -> None:
    driver = Driver(4, SPEC.model_copy(update={"scale_down_after": timedelta(seconds=30)}))
    driver.run(300, 60_000)
    driver.run(30, 120_000)
    while driver.decisions[-1].target == 4:
        driver.run(15, 120_000)
    raised = driver.decisions[-1].target
    driver.batches = [batch for batch in driver.batches if batch.finished_at <= driver.now]
    decision = driver.idle(120)
    assert decision.target < raised, decision.explanation


def test_a_trickle_after_an_idle_hour_calls_for_nothing() -> None:
    driver = Driver(8)
    driver.run(600, 140_000)
    assert driver.idle(3600).target == 1
    looked = driver.now
    for _ in range(8):
        driver.now += timedelta(seconds=15)
        last = driver.batches[-1]
        driver.batches.append(
            last.model_copy(
                update={
                    "batch": last.batch + 1,
                    "finished_at": driver.now,
                    "records": 100,
                    "bytes": 25_000,
                    "seconds": StageSeconds(plan=0, fetch=0.3, write=0.4, commit=0),
                    "executors": 1,
                    "arrival_rate": 10.0,
                    "horizon": driver.now - timedelta(seconds=0.7),
                    "core_seconds": CoreSeconds(fetch=0.004, write=0.006),
                }
            )
        )
        decision = driver.evaluate(caught_up_at=looked)
        assert decision.wanted == 1, decision.explanation
        assert "behind" not in decision.explanation


def test_a_full_cluster_gets_its_target_lowered_and_is_asked_again() -> None:
    driver = Driver(5)
    driver.run(300, 75_000)
    driver.follows = False
    driver.run(180, 300_000)
    assert driver.decisions[-1].target > 10
    driver.pending_since = driver.now
    driver.run(180, 300_000)
    decision = driver.decisions[-1]
    assert decision.target == 5
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.RESOURCE_STARVED
    driver.pending_since = None
    driver.run(600, 300_000)
    assert max(decision.target for decision in driver.decisions[-30:]) >= 10


def test_the_least_executors_stay_asked_for_and_more_are_asked_for_once_they_are_there() -> None:
    driver = Driver(3, SPEC.model_copy(update={"min_executors": 3}))
    driver.run(300, 36_000)
    driver.room, driver.pending_since = 2, driver.now
    driver.executors = 2
    decision = driver.run(600, 36_000)
    assert decision.explanation.startswith("stays at 3 executors: 1 of 3 executors have not started"), decision
    assert "asked for again" not in decision.explanation
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.RESOURCE_STARVED
    assert driver.events.count("ResourceStarved") == 1
    driver.room, driver.pending_since = 1_000, None
    driver.executors, driver.cost = 3, 2 * COST
    assert driver.run(240, 36_000).target > 3


def test_executors_that_came_while_nobody_looked_are_not_late() -> None:
    driver = Driver(4)
    driver.run(300, 60_000)
    driver.follows = False
    driver.run(40, 150_000)
    assert driver.state.raised_at is not None
    driver.executors = driver.decisions[-1].target
    # The operator is away; what it knows is what it wrote down with the step.
    driver.now += timedelta(minutes=4)
    driver.evaluate()
    assert driver.state.start_delays == ()
    assert driver.state.raised_at is None


def test_executors_that_a_quota_refuses_are_given_back_with_the_load() -> None:
    driver = Driver(3)
    driver.run(300, 50_000)
    driver.room = 5
    driver.run(900, 150_000)
    assert driver.decisions[-1].target > 5
    driver.run(1800, 10_000)
    assert driver.decisions[-1].target == 1
    assert not driver.state.start_delays, "nobody knows how long the others take"


def test_a_full_cluster_is_said_of_executors_set_by_hand_and_they_stay_asked_for() -> None:
    driver = Driver(2)
    driver.run(60, 20_000)
    driver.spec = SPEC.model_copy(update={"executors": 4})
    driver.follows = False
    driver.pending_since = driver.now
    assert driver.run(110, 20_000).condition is None
    decision = driver.run(60, 20_000)
    assert decision.target == 4
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.RESOURCE_STARVED
    assert "2 of 4 executors have not started" in decision.condition.message
    assert "ImagePullBackOff: 401" in decision.condition.message
    assert driver.events.count("ResourceStarved") == 1
    driver.executors, driver.pending_since = 4, None
    assert driver.run(15, 20_000).condition is None


def test_a_step_without_gain_is_taken_back() -> None:
    driver = Driver(4)
    driver.run(900, 60_000)
    # From now on batches take fifteen seconds, however many executors there are.
    for _ in range(60):
        before = driver.batches[-1].finished_at
        driver.batches.append(
            driver.batches[-1].model_copy(
                update={
                    "batch": len(driver.batches),
                    "finished_at": before + timedelta(seconds=15),
                    "records": 1_500_000,
                    "seconds": StageSeconds(plan=0, fetch=7, write=8, commit=0),
                    "executors": driver.executors,
                    "arrival_rate": 100_000.0,
                    "lag_seconds": 50.0,
                    "backlog_records": 5_000_000.0,
                    "horizon": before - timedelta(seconds=35),
                    # Its tasks share the cores that there are.
                    "core_seconds": CoreSeconds(
                        fetch=7.0 * driver.executors * LIMITS.cores, write=8.0 * driver.executors * LIMITS.cores
                    ),
                }
            )
        )
        driver.now = before + timedelta(seconds=15)
        driver.evaluate()
    assert LimitReason.NO_GAIN in driver.events


def test_who_is_late_is_given_more_before_it_is_known_of_what_use_the_last_step_was() -> None:
    driver = Driver(4)
    driver.run(900, 60_000)
    began = driver.now
    while driver.now - began < timedelta(minutes=4):
        last = driver.batches[-1]
        driver.now = last.finished_at + timedelta(seconds=10)
        late = 50 + (driver.now - began).total_seconds() / 2
        update = {
            "batch": last.batch + 1,
            "finished_at": driver.now,
            "records": 600_000,
            "arrival_rate": 60_000.0,
            # Of those that were asked for too few have come for a verdict.
            "executors": 5,
            "horizon": driver.now - timedelta(seconds=late),
            "lag_seconds": late,
            "core_seconds": CoreSeconds(fetch=0.4 * COST * 600_000, write=0.6 * COST * 600_000),
        }
        driver.batches.append(last.model_copy(update=update))
        driver.evaluate()
    # 4, 5, 6, 8: that one would be worth a verdict.
    assert driver.decisions[-1].target >= 10


def test_the_maximum_is_kept_and_said() -> None:
    driver = Driver(10, Scaling(min_executors=1, max_executors=10, target_utilization=0.8))
    decision = driver.run(1200, 400_000)
    assert decision.target == 10
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.AT_MAXIMUM
    assert driver.events.count("AtMaximum") == 1, "an event once, not with each evaluation"


def test_a_shard_at_its_read_limit_is_named_as_what_limits() -> None:
    driver = Driver(4)
    driver.shard_bytes = 20_000_000
    driver.run(600, 100_000)
    decision = driver.decisions[-1]
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.SHARD_LIMITED
    assert decision.condition.message.startswith("the fullest shard gets ")
    driver.state = replace(driver.state, evaluated_at=None)
    named = driver.evaluate(fullest_shard="shardId-000000000007").condition
    assert named is not None
    assert named.message.startswith("the fullest shard, shardId-000000000007, gets ")


def test_more_executors_than_shards_can_use_are_not_asked_for() -> None:
    driver = Driver(2)
    driver.shards = 8
    driver.run(1200, 300_000)
    assert max(decision.target for decision in driver.decisions) == 4


def test_a_trigger_shorter_than_a_commit_is_said() -> None:
    driver = Driver(4)
    driver.limits = replace(LIMITS, interval=1.0)
    driver.run(900, 1_000, fixed=6.0)
    conditions = {decision.condition.reason for decision in driver.decisions if decision.condition}
    assert conditions <= {LimitReason.TRIGGER_TOO_SHORT}


def test_a_dry_run_says_and_does_nothing() -> None:
    driver = Driver(5, SPEC.model_copy(update={"dry_run": True}))
    driver.run(600, 225_000)
    assert {decision.target for decision in driver.decisions} == {5}
    assert driver.decisions[-1].explanation.startswith("dry run, stays at 5")
    assert driver.events.count("DryRun") <= 4


def test_a_dry_run_of_a_load_that_goes_up_and_down_is_told_every_ten_minutes_at_most() -> None:
    driver = Driver(2, SPEC.model_copy(update={"dry_run": True}))
    for number in range(240):
        driver.run(15, 38_000 * (1.2 if number % 7 < 3 else 0.8))
    assert 1 <= driver.events.count("DryRun") <= 6


def test_in_an_excluded_window_nothing_changes() -> None:
    window = ExcludedWindow(cron="0 12 * * *", duration=timedelta(hours=2))
    driver = Driver(5, SPEC.model_copy(update={"excluded_windows": (window,)}))
    decision = driver.run(1200, 225_000)
    assert decision.target == 5
    assert "2026-01-05 14:00 UTC" in decision.explanation


def test_scheduled_executors_are_there_before_their_time_and_until_it_ends() -> None:
    scheduled = ScheduledExecutors(cron="20 12 * * *", duration=timedelta(minutes=30), executors=12)
    driver = Driver(4, SPEC.model_copy(update={"schedule": (scheduled,)}))
    driver.run(1060, 60_000)
    assert driver.executors == 4
    driver.run(60, 60_000)
    assert driver.executors == 12, "a minute before"
    assert any("scaling.schedule" in decision.explanation for decision in driver.decisions)
    driver.run(1500, 60_000)
    assert driver.executors == 12
    driver.run(1500, 60_000)
    assert driver.executors == 4


def test_scheduled_executors_are_given_back_though_nothing_has_ever_come() -> None:
    scheduled = ScheduledExecutors(cron="20 12 * * *", duration=timedelta(minutes=30), executors=12)
    driver = Driver(1, SPEC.model_copy(update={"schedule": (scheduled,)}))
    assert driver.idle(1800).target == 12
    assert driver.idle(1260).target == 1
    assert any(decision.explanation == "12 → 1 executors: nothing has come yet" for decision in driver.decisions)


def test_without_load_executors_are_kept_for_as_long_as_a_need_is_and_until_the_driver_has_looked() -> None:
    driver = Driver(1, SPEC.model_copy(update={"executors": 12}))
    assert driver.idle(60).target == 12
    driver.spec = SPEC
    assert driver.idle(480).target == 12
    behind = fetched_of(0, START, 1_000)
    driver.now += timedelta(minutes=5)
    assert driver.evaluate(caught_up_at=driver.now, fetched=behind).target == 12, "what comes is not known yet"
    assert driver.idle(15).target == 1


def test_a_schedule_asks_a_full_cluster_no_more_often_than_a_load_does() -> None:
    scheduled = ScheduledExecutors(cron="10 12 * * *", duration=timedelta(hours=3), executors=20)
    driver = Driver(4, SPEC.model_copy(update={"schedule": (scheduled,)}))
    driver.run(420, 60_000)
    driver.room = 5
    targets = [4]
    for _ in range(7200 // 10):
        driver.pending_since = (driver.pending_since or driver.now) if driver.state.target != 5 else None
        targets.append(driver.run(10, 60_000).target)
    changes = sum(one != other for one, other in pairwise(targets))
    assert changes <= 2 * (1 + 7200 / 720), "five minutes later, and then every ten, for two"
    assert driver.decisions[-1].target in (5, 20)
    waits = [one for one in driver.decisions[200:] if one.target == 5]
    assert {one.condition.reason for one in waits if one.condition} == {LimitReason.RESOURCE_STARVED}
    assert all(one.condition for one in waits), "it is told all the time"
    driver.pending_since, driver.room = None, 1_000
    driver.run(660, 60_000)
    assert driver.decisions[-1].target == 20


def test_a_number_set_by_hand_is_taken_at_once() -> None:
    driver = Driver(5, SPEC.model_copy(update={"executors": 17}))
    assert driver.evaluate().target == 17


def test_new_bounds_are_kept_at_once() -> None:
    driver = Driver(5)
    driver.run(60, 75_000)
    driver.spec = SPEC.model_copy(update={"min_executors": 8})
    driver.now += timedelta(seconds=15)
    assert driver.evaluate().target == 8


def test_between_evaluations_the_last_decision_is_repeated() -> None:
    driver = Driver(5)
    first = driver.evaluate()
    driver.now += timedelta(seconds=4)
    again = driver.evaluate()
    assert again.state == first.state
    assert again.events == ()


def test_the_state_survives_json() -> None:
    driver = Driver(5)
    driver.run(900, 75_000)
    driver.run(300, 225_000)
    text = driver.state.to_json()
    assert ScalingState.from_json(text) == driver.state
    assert len(text) < 48 * 1024


@pytest.mark.parametrize("text", [None, "", "nonsense", "[]", '{"target": "many"}'])
def test_a_state_that_is_nonsense_is_a_new_one(text: str | None) -> None:
    assert ScalingState.from_json(text) == ScalingState()


def test_without_state_the_drivers_own_target_is_kept() -> None:
    window = ScalingWindow(LIMITS, (), ExecutorsReport(target=7, registered=3), reported_at=START)
    for looked in (None, START):
        assert decide_scale(SPEC, replace(window, caught_up_at=looked), ScalingState(), START).target == 7


def test_more_executors_than_the_files_of_a_table_can_take_are_not_asked_for() -> None:
    driver = Driver(2)
    driver.file_groups = 8
    driver.run(900, 30_000)
    assert driver.decisions[-1].condition is None, "four slots of two executors are fewer than the file groups"
    decision = driver.run(3600, 300_000)
    assert decision.condition is not None
    assert decision.condition.reason is LimitReason.FILE_GROUP_LIMITED
    assert "8 file groups of the table (partitions that it touches × index.buckets)" in decision.condition.message
    assert "limited by FileGroupLimited" in decision.explanation
    # Eight slots write; what four or five more read meanwhile, these write next. 300,000 records/s are 15 executors.
    assert 4 <= driver.executors <= 8
    assert "FileGroupLimited" in driver.events


@pytest.mark.parametrize(("what", "left"), [("file_groups", 5), ("shards", 8)])
def test_executors_that_are_of_no_use_any_more_are_given_back_though_the_writer_is_behind(what: str, left: int) -> None:
    driver = Driver(20)
    driver.run(300, 100_000)
    setattr(driver, what, left)
    decision = driver.run(3600, 100_000)
    assert "records behind" in decision.explanation
    assert driver.executors == 5, "eight slots, and a little more"


def test_many_file_groups_limit_nothing() -> None:
    bound, free = Driver(5), Driver(5)
    bound.file_groups = 1_000
    for driver in (bound, free):
        driver.run(900, 75_000)
        driver.run(900, 225_000)
    assert [one.target for one in bound.decisions] == [one.target for one in free.decisions]
    assert [one.explanation for one in bound.decisions] == [one.explanation for one in free.decisions]
