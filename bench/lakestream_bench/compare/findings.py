"""What the trials of a comparison come to: every number of the report, from the raw results. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.coefficients import measured
from lakestream_bench.compare.method import (
    SPARK,
    Freshness,
    Quarters,
    Spread,
    alone,
    cpu_per_million,
    degradation,
    freshness,
    rows_per_second,
    seconds_of,
    space_amplification,
    valid,
    write_amplification,
)
from lakestream_bench.compare.money import (
    Bill,
    BreakEven,
    Load,
    Measured,
    Prices,
    StreamModes,
    bill,
    break_even,
    stream_modes,
)
from lakestream_bench.compare.queries import Kind
from lakestream_bench.compare.results import Beside, Look, Requests, Results, Trial, Wrong
from lakestream_bench.compare.scenarios import INTERVALS, Scenario
from lakestream_bench.compare.truth import Staleness


@dataclass(frozen=True)
class QueryFindings:
    """One kind of query of one arm, by one engine."""

    kind: str
    engine: str
    cold: Spread
    """Seconds at the last look with most commits since a compaction."""
    before: Spread
    """Seconds, warm, at the same look."""
    after: Spread
    """Seconds, warm, just behind the compaction; of arms without one at the look of the same batch."""
    degradation: float | None
    """LST-Bench's rate from look to look, warm; the median of the repetitions."""
    stale: Staleness | None
    """The most that an answer lagged behind; None: it may not lag."""


@dataclass(frozen=True)
class BesideFindings:
    """One question that an arm was asked while it was written, by one engine; all repetitions."""

    kind: str
    engine: str
    seconds: Spread | None
    """Of the repetitions' medians; None: nothing was answered."""
    asked: int
    torn: int
    """Answers that are of no number of whole batches."""
    failed: int
    error: str
    """One that was told; empty: none was."""


@dataclass(frozen=True)
class Curve:
    """Values over batches, of the first repetition."""

    batches: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class ArmFindings:
    """One arm in one scenario, over its repetitions."""

    arm: str
    title: str
    color: str
    repetitions: int
    rows_per_second: Spread
    batch_seconds: Spread
    batch_seconds_by_quarter: Quarters
    stages: Mapping[str, float]
    """Median seconds of a batch's stages, one repetition with the other."""
    freshness: tuple[Freshness, ...]
    """At each of INTERVALS, from the batch seconds of all repetitions."""
    cpu_per_million: Spread
    cpu_per_million_by_quarter: Quarters
    write_amplification: Spread
    space_amplification: Spread
    objects_written_per_batch: Spread
    objects_deleted_per_batch: Spread
    files: Spread
    """At the end."""
    batch_degradation: float | None
    """LST-Bench's rate over batches of the same size."""
    queries: tuple[QueryFindings, ...]
    misread: tuple[Wrong, ...]
    """What readers answer wrongly, each at the last look that shows it."""
    beside: tuple[BesideFindings, ...]
    """Empty: nobody asked while it was written."""
    files_over_time: Curve
    work_over_time: Curve
    """Seconds of all batches so far, waiting left out."""
    aggregate_since_compaction: Curve
    """Warm seconds of an aggregate over commits since the last compaction (`batches`), just before it and behind it."""
    measured: Measured
    """What the money model takes."""

    @property
    def usual_freshness(self) -> Freshness:
        """At the middle one of INTERVALS."""
        return self.freshness[len(self.freshness) // 2]

    def query(self, kind: Kind, engine: str = SPARK) -> QueryFindings | None:
        """None: the arm is not asked that."""
        asked = (kind.value, engine)
        return next((one for one in self.queries if (one.kind, one.engine) == asked), None)


@dataclass(frozen=True)
class Money:
    """The bills of one scenario at one load."""

    load: Load
    bills: tuple[Bill, ...]
    break_evens: tuple[BreakEven, ...]
    stream: StreamModes
    """Of which every bill has one."""


@dataclass(frozen=True)
class ScenarioFindings:
    """All arms in one scenario."""

    scenario: Scenario
    arms: tuple[ArmFindings, ...]
    wrong: tuple[Wrong, ...]
    """What plain JSON answers, at the last look."""
    requests: tuple[Requests, ...]
    """Of all arms; empty if those of one were not counted: it would seem to cost less than the others."""
    failures: tuple[str, ...]
    """Trials without figures, arms whose requests could not be counted, and why: a sentence each."""
    money: Money


def find(results: Results, given: Mapping[str, float], prices: Prices) -> tuple[ScenarioFindings, ...]:
    """Everything that the report tells.

    Args:
        results: what was measured.
        given: fields of `Load`, as a user has them. Bytes per event and the share that makes a row that stays are those
            of each scenario's events where they are not among them.
        prices: that the bills are of.

    Raises:
        ValueError: what was measured is of another version.
    """
    _require_known(results)
    return tuple(_scenario(results, scenario, given, prices) for scenario in results.setup.scenarios)


def _require_known(results: Results) -> None:
    kinds = {asked.kind for trial in results.trials for look in trial.looks for asked in look.asked}
    arms = {trial.arm for trial in results.trials} | {one.arm for one in results.requests}
    if unknown := sorted((arms - ARMS.keys()) | (kinds - {kind.value for kind in Kind})):
        raise ValueError(f"these results are of another version, which compared {', '.join(unknown)}; measure anew")


def _scenario(results: Results, scenario: Scenario, given: Mapping[str, float], prices: Prices) -> ScenarioFindings:
    trials = results.trials
    names = list(dict.fromkeys(trial.arm for trial in trials if trial.scenario == scenario.name))
    counts = [one for one in results.requests if one.scenario == scenario.name]
    by_arm = {name: found for name in sorted(names, key=list(ARMS).index) if (found := _valid(trials, scenario, name))}
    counted = {one.arm: one for one in counts if one.failure is None}
    requests = counted if by_arm.keys() <= counted.keys() else {}
    arms = tuple(_arm(scenario, name, found, requests.get(name)) for name, found in by_arm.items())
    naive = [look.naive for found in by_arm.values() for look in found[0].looks[-1:] if look.naive]
    return ScenarioFindings(
        scenario=scenario,
        arms=arms,
        wrong=naive[0] if naive else (),
        requests=tuple(requests.values()),
        failures=(
            *(_failure(trial) for trial in trials if trial.scenario == scenario.name and trial.failure),
            *(f"No requests are counted: {ARMS[one.arm].title}: {one.failure}" for one in counts if one.failure),
        ),
        money=_money([arm.measured for arm in arms], _load(list(by_arm.values()), given), prices),
    )


def _failure(trial: Trial) -> str:
    of = "of all repetitions, since an answer was wrong" if trial.is_wrong else f"of repetition {trial.repetition + 1}"
    return f"No figures {of}: {ARMS[trial.arm].title}: {trial.failure}"


def _load(found: Sequence[Sequence[Trial]], given: Mapping[str, float]) -> Load:
    """Of events as those that were written, where nothing else is given."""
    if not found:
        return Load(**given)
    trial = found[0][0]
    size = sum(batch.bytes for batch in trial.batches) / sum(batch.records for batch in trial.batches)
    events = {"event_bytes": size, "new_keys": trial.looks[-1].rows / trial.looks[-1].events}
    return Load(**(events | dict(given)))


def _valid(trials: Sequence[Trial], scenario: Scenario, arm: str) -> list[Trial]:
    return valid(trials, scenario.name, arm)


def _money(measured: Sequence[Measured], load: Load, prices: Prices) -> Money:
    by_name = {one.arm: one for one in measured}
    pairs = [("cow", "mor"), ("mor", "json"), ("cow", "json"), ("mor", "defaults")]
    return Money(
        load,
        tuple(bill(one, load, prices) for one in measured),
        tuple(
            break_even(by_name[new], by_name[old], load, prices) for new, old in pairs if {new, old} <= by_name.keys()
        ),
        stream_modes(load, prices),
    )


def _arm(scenario: Scenario, name: str, trials: Sequence[Trial], requests: Requests | None) -> ArmFindings:
    arm = ARMS[name]
    ends = [trial.looks[-1] for trial in trials]
    stages = {stage for trial in trials for batch in trial.batches for stage in batch.stages}
    first = trials[0]
    seconds = [one for trial in trials for one in alone(trial)]
    return ArmFindings(
        arm=name,
        title=arm.title,
        color=arm.color,
        repetitions=len(trials),
        rows_per_second=Spread.of(map(rows_per_second, trials)),
        batch_seconds=Spread.of(statistics.median(alone(trial)) for trial in trials),
        batch_seconds_by_quarter=Quarters.of(trials, lambda trial: statistics.median(alone(trial))),
        stages={
            stage: statistics.median(batch.stages.get(stage, 0.0) for trial in trials for batch in trial.batches)
            for stage in sorted(stages)
        },
        freshness=tuple(freshness(seconds, interval) for interval in INTERVALS),
        cpu_per_million=Spread.of(map(cpu_per_million, trials)),
        cpu_per_million_by_quarter=Quarters.of(trials, cpu_per_million),
        write_amplification=Spread.of(map(write_amplification, trials)),
        space_amplification=Spread.of(map(space_amplification, ends)),
        objects_written_per_batch=Spread.of(
            statistics.fmean(batch.objects_written for batch in trial.batches) for trial in trials
        ),
        objects_deleted_per_batch=Spread.of(
            statistics.fmean(batch.objects_deleted for batch in trial.batches) for trial in trials
        ),
        files=Spread.of(trial.batches[-1].files for trial in trials),
        batch_degradation=_batch_degradation(trials),
        queries=tuple(_query(trials, one.kind, one.engine) for one in ends[0].asked),
        misread=tuple({(one.kind, one.engine): one for look in first.looks for one in look.misread}.values()),
        beside=_beside(trials),
        files_over_time=Curve(
            tuple(range(1, len(first.batches) + 1)), tuple(float(batch.files) for batch in first.batches)
        ),
        work_over_time=Curve(tuple(range(1, len(first.batches) + 1)), tuple(accumulate(alone(first)))),
        aggregate_since_compaction=_since_compaction(trials),
        measured=measured(name, trials, requests),
    )


def _batch_degradation(trials: Sequence[Trial]) -> float | None:
    """Each is compared with the one before of the same size."""
    sizes = {batch.records for trial in trials for batch in trial.batches}
    rates = [
        degradation(
            [seconds for batch, seconds in zip(trial.batches, alone(trial), strict=True) if batch.records == size]
        )
        for trial in trials
        for size in sizes
    ]
    known = [rate for rate in rates if rate is not None]
    return statistics.median(known) if known else None


def before_and_after(looks: Sequence[Look]) -> tuple[Look, Look]:
    """Of a table's looks those around its last compaction, or twice the last one where there are none."""
    around = [
        (before, after) for before, after in pairwise(looks) if before.since_compaction and after.since_compaction == 0
    ]
    return around[-1] if around else (looks[-1], looks[-1])


def _query(trials: Sequence[Trial], kind: str, engine: str) -> QueryFindings:
    pairs = [before_and_after(trial.looks) for trial in trials]
    # A compaction between two looks would be told as if the table had become quicker.
    rates = [
        degradation(seconds_of([look for look in trial.looks if look.since_compaction != 0], kind, engine))
        for trial in trials
    ]
    known = [rate for rate in rates if rate is not None]
    asked = [one for trial in trials for look in trial.looks for one in look.asked]
    lags = [one.stale for one in asked if (one.kind, one.engine) == (kind, engine)]
    return QueryFindings(
        kind=kind,
        engine=engine,
        cold=Spread.of(seconds for before, _ in pairs for seconds in seconds_of([before], kind, engine, cold=True)),
        before=Spread.of(seconds for before, _ in pairs for seconds in seconds_of([before], kind, engine)),
        after=Spread.of(seconds for _, after in pairs for seconds in seconds_of([after], kind, engine)),
        degradation=statistics.median(known) if known else None,
        stale=max((lag for lag in lags if lag), key=lambda lag: (lag.batches, lag.orders), default=None),
    )


def _beside(trials: Sequence[Trial]) -> tuple[BesideFindings, ...]:
    """All repetitions together."""
    found: dict[tuple[str, str], list[Beside]] = {}
    for trial in trials:
        for one in trial.beside:
            found.setdefault((one.kind, one.engine), []).append(one)
    return tuple(
        BesideFindings(
            kind=kind,
            engine=engine,
            seconds=Spread.of(known) if (known := [one.seconds for one in ones if one.seconds is not None]) else None,
            asked=sum(one.asked for one in ones),
            torn=sum(one.torn for one in ones),
            failed=sum(one.failed for one in ones),
            error=next((one.error for one in ones if one.error), ""),
        )
        for (kind, engine), ones in found.items()
    )


def _since_compaction(trials: Sequence[Trial]) -> Curve:
    points: dict[int, list[float]] = {}
    for trial in trials:
        # Of one age, as it grows with each batch; what is not compacted is as old then.
        for look in before_and_after(trial.looks):
            points.setdefault(look.since_compaction or 0, []).extend(seconds_of([look], Kind.AGGREGATE.value))
    ordered = sorted(points)
    return Curve(tuple(ordered), tuple(statistics.median(points[commits]) for commits in ordered))
