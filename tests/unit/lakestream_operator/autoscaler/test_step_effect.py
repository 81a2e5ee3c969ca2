"""Whether the last step up was of use."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakestream_operator.autoscaler.effect import judge
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.rates import Rate
from lakestream_operator.autoscaler.state import BatchModel, Sample, ScalingState, Step

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LOAD = Load(Rate(1e5, None, 0.03), record_bytes=250.0, lag=20.0, backlog=0.0, open_shards=1_000, shard_load=0.5)


def sample(at: float, executors: int, work: float, *, shard_bound: bool = False) -> Sample:
    return Sample(
        NOW + timedelta(seconds=at),
        batches=1,
        records=1_000_000,
        bytes=250_000_000,
        span=10.0,
        fetch_work=0.4 * work,
        write_work=0.6 * work,
        measured=True,
        executors=executors,
        shard_bound=shard_bound,
    )


def state(after: list[Sample]) -> ScalingState:
    before = [sample(-10.0 * (number + 1), 100, 100.0) for number in reversed(range(6))]
    model = BatchModel(1.0, 40e-6, 60e-6, is_sure=True)
    return ScalingState(target=200, samples=(*before, *after), model=model, step=Step(NOW, 100, 200, 1e5))


def test_it_is_judged_though_one_executor_of_many_is_still_to_come() -> None:
    after = [sample(30.0 + 10 * number, 196, 200.0) for number in range(8)]
    found, verdict = judge(state(after), LOAD, NOW + timedelta(seconds=120))
    assert found.step is None
    assert verdict is not None, "a record takes twice the core-seconds"


def test_batches_with_half_of_a_step_tell_nothing() -> None:
    after = [sample(30.0 + 10 * number, 150, 200.0) for number in range(20)]
    found, verdict = judge(state(after), LOAD, NOW + timedelta(seconds=240))
    assert found.step is not None
    assert verdict is None


def test_what_waits_for_a_shard_is_no_judge_and_not_waited_for() -> None:
    after = [sample(30.0 + 10 * number, 200, 200.0, shard_bound=True) for number in range(2)]
    found, verdict = judge(state(after), LOAD, NOW + timedelta(seconds=60))
    assert found.step is None
    assert verdict is None
    assert found.block is None


def test_batches_that_took_no_more_than_any_does_are_no_measure() -> None:
    after = [sample(30.0 + 10 * number, 196, 200.0) for number in range(8)]
    known = state(after)
    assert known.model is not None
    found, verdict = judge(
        replace(known, model=replace(known.model, fetch_base=60.0, write_base=60.0)), LOAD, NOW + timedelta(seconds=120)
    )
    assert found.step is None
    assert verdict is None
