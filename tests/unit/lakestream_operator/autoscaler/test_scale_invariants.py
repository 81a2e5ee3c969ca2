"""What holds for every history of batches."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakestream_api import CoreSeconds, ExecutorsReport, Scaling, StageSeconds
from lakestream_operator.autoscaler import (
    BatchLimits,
    ScaleDecision,
    ScalingState,
    ScalingWindow,
    decide_scale,
)
from lakestream_operator.autoscaler.demand import demand
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.rates import Rate
from lakestream_operator.autoscaler.state import BatchModel
from lakestream_operator.testing.documents import batch_of

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = BatchLimits(interval=10.0, max_records=500_000, max_bytes=1 << 28, cores=2)


@st.composite
def specs(draw: st.DrawFn) -> Scaling:
    least = draw(st.integers(1, 20))
    return Scaling(
        min_executors=least,
        max_executors=draw(st.integers(least, 200)),
        target_utilization=draw(st.floats(0.3, 0.95)),
    )


@st.composite
def steps(draw: st.DrawFn) -> dict[str, object]:
    """What happens between two evaluations."""
    return {
        "seconds": draw(st.sampled_from([5, 15, 30, 60, 700])),
        "records": draw(st.integers(0, 1_000_000)),
        "size": draw(st.sampled_from([0, 10, 200, 100_000])),
        "by_bytes": draw(st.none() | st.booleans()),
        "busy": draw(st.floats(0.1, 100)),
        "rate": draw(st.one_of(st.none(), st.floats(0, 1e6))),
        "lag": draw(st.sampled_from([0.0, 0.0, 5.0, 45.0, 600.0])),
        "registered": draw(st.integers(0, 200)),
        "silent": draw(st.booleans()),
        "pending": draw(st.booleans()),
    }


def _work(step: dict[str, object]) -> CoreSeconds | None:
    """What a batch's tasks take, by its bytes or its records; None: the driver does not tell."""
    if step["by_bytes"] is None:
        return None
    records = int(str(step["records"]))
    work = 1e-7 * records * int(str(step["size"])) if step["by_bytes"] else 1e-4 * records
    return CoreSeconds(fetch=work, write=work)


def _play(spec: Scaling, history: list[dict[str, object]]) -> list[tuple[ScaleDecision, ScaleDecision | None, dict]]:  # type: ignore[type-arg]
    now, state, batches = START, ScalingState(), []
    reported = START
    decisions: list[tuple[ScaleDecision, ScaleDecision | None, dict]] = []  # type: ignore[type-arg]
    for number, step in enumerate(history):
        now += timedelta(seconds=float(str(step["seconds"])))
        busy = float(str(step["busy"]))
        if not step["silent"]:
            reported = now
            lag = float(str(step["lag"]))
            update = {
                "bytes": int(str(step["records"])) * int(str(step["size"])),
                "seconds": StageSeconds(plan=0, fetch=busy / 3, write=busy, commit=0),
                "core_seconds": _work(step),
                "executors": max(1, int(str(step["registered"]))),
                "arrival_rate": None if step["rate"] is None else float(str(step["rate"])),
                "backlog_records": lag * 1000,
                "horizon": None,
            }
            batch = batch_of(number, now, lag=lag, records=int(str(step["records"])), open_shards=64)
            batches.append(batch.model_copy(update=update))
        pending = now - timedelta(seconds=200) if step["pending"] else None
        executors = ExecutorsReport(target=5, registered=int(str(step["registered"])))
        window = ScalingWindow(LIMITS, tuple(batches[-40:]), executors, reported, pending_since=pending)
        before = decisions[-1][0] if decisions else None
        decision = decide_scale(spec, window, state, now)
        state = ScalingState.from_json(decision.state.to_json())
        assert state == decision.state
        decisions.append((decision, before, {**step, "stale": now - reported > timedelta(minutes=6)}))
    return decisions


@given(specs(), st.lists(steps(), min_size=1, max_size=25))
@settings(max_examples=settings().max_examples // 5)
def test_targets_lie_between_the_bounds(spec: Scaling, history: list[dict[str, object]]) -> None:
    decisions = _play(spec, history)
    for decision, _, _ in decisions:
        assert spec.min_executors <= decision.target <= spec.max_executors
        assert decision.explanation
    assert _play(spec, history) == decisions, "the same again"


@given(specs(), st.lists(steps(), min_size=2, max_size=25))
@settings(max_examples=settings().max_examples // 5)
def test_silence_and_backlogs_never_take_executors_away(spec: Scaling, history: list[dict[str, object]]) -> None:
    history = [{**step, "pending": False} for step in history]
    for decision, before, step in _play(spec, history):
        if before is None or decision.target >= before.target:
            continue
        assert not step["stale"]
        taken_back = decision.condition is not None and decision.condition.reason == "NoGain"
        assert taken_back or step["silent"] or float(str(step["lag"])) < 60


@given(st.lists(st.tuples(st.sampled_from([0, 0, 10, 1000, 100_000]), st.booleans()), min_size=5, max_size=40))
@settings(max_examples=settings().max_examples // 5)
def test_records_without_a_byte_cost_something_whatever_goes_by_the_byte(sizes: list[tuple[int, bool]]) -> None:
    usual = {"seconds": 10, "records": 50_000, "busy": 1, "rate": 5e3, "lag": 0.0, "silent": False, "pending": False}
    usual |= {"registered": 1}
    history = [usual | {"size": size, "by_bytes": by_bytes} for size, by_bytes in sizes]
    for decision, _, _ in _play(Scaling(max_executors=40), history):
        model = decision.state.model
        assert model is None or all(math.isfinite(one) for one in (model.fetch, model.write, model.services))


@given(specs(), st.lists(steps(), min_size=1, max_size=25), st.integers(0, 200))
@settings(max_examples=settings().max_examples // 5)
def test_a_stream_that_has_gone_quiet_gives_all_back_however_many_ever_came(
    spec: Scaling, history: list[dict[str, object]], registered: int
) -> None:
    quiet = {"seconds": 15, "records": 15, "busy": 0.1, "rate": 1.0, "lag": 0.0, "silent": False, "pending": False}
    quiet |= {"size": 200, "by_bytes": None}
    rush = {**quiet, "seconds": 30, "records": 1_000_000, "busy": 60.0, "rate": 3e4, "lag": 45.0}
    history = [*history, *[rush | {"registered": registered}] * 5, *[quiet | {"registered": registered}] * 200]
    assert _play(spec, history)[-1][0].target == spec.min_executors


MODEL = BatchModel(fixed=1.0, fetch=40e-6, write=60e-6)


def _load(rate: float) -> Load:
    return Load(Rate(rate, None, 0.05), record_bytes=250.0, lag=0.0, backlog=0.0, open_shards=10_000, shard_load=0.0)


@given(st.floats(1, 3e5), st.floats(1, 3e5), st.floats(0.3, 0.95), st.booleans())
def test_more_load_never_wants_fewer_executors(one: float, other: float, share: float, behind: bool) -> None:
    spec = Scaling(max_executors=10_000, target_utilization=share)
    wanted = [
        demand(spec, LIMITS, MODEL, _load(rate), rate=rate, reading=1.5 * rate if behind else 0.0).wanted
        for rate in sorted((one, other))
    ]
    assert wanted[0] <= wanted[1]


@given(st.floats(1, 3e5), st.floats(1, 20), st.floats(1, 20))
@example(rate=252_270.0, one=10.828125, other=11.0).via("both fill their time, but for a last digit")
def test_a_larger_backlog_never_wants_fewer_executors(rate: float, one: float, other: float) -> None:
    wanted = [
        demand(Scaling(), LIMITS, MODEL, _load(rate), rate=rate, reading=times * rate).wanted
        for times in sorted((one, other))
    ]
    assert wanted[0] <= wanted[1]


@given(st.floats(1, 3e5), st.floats(0, 0.3), st.floats(0, 0.3))
def test_more_noise_never_wants_fewer_executors(rate: float, one: float, other: float) -> None:
    loads = [replace(_load(rate), rate=Rate(rate, None, noise)) for noise in sorted((one, other))]
    wanted = [demand(Scaling(), LIMITS, MODEL, load, rate=rate).wanted for load in loads]
    assert wanted[0] <= wanted[1]


@given(st.floats(1, 3e5), st.floats(1e-6, 1e-3), st.floats(1.0, 5.0))
def test_dearer_records_never_want_fewer_executors(rate: float, cost: float, factor: float) -> None:
    wanted = [
        demand(Scaling(), LIMITS, replace(MODEL, fetch=each, write=each), _load(rate), rate=rate).wanted
        for each in (cost, cost * factor)
    ]
    assert wanted[0] <= wanted[1]
