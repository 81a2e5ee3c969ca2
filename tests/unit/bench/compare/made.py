"""Results as a comparison would leave them, small and made up."""

from __future__ import annotations

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.method import NATIVE, SPARK
from lakestream_bench.compare.queries import Kind
from lakestream_bench.compare.results import Asked, BatchFigures, Look, Requests, Results, Setup, Trial, Wrong
from lakestream_bench.compare.scenarios import SCENARIOS, Scenario
from lakestream_bench.compare.truth import Staleness

SCENARIO = SCENARIOS["half-updates"]
SPEED = {"json": 0.2, "cow": 2.0, "mor": 0.8}
"""Seconds of a batch of 2,000 events."""


def setup(*scenarios: Scenario) -> Setup:
    machine = {"processor": "A <fast> one", "cores": "2", "memory": "23 GiB"}
    return Setup(scenarios or (SCENARIO,), {"pyspark": "3.5.9"}, machine, {"spark.sql.adaptive.enabled": "true"}, 2)


def trial(arm: str, repetition: int = 0, *, slower: float = 1.0, scenario: Scenario = SCENARIO) -> Trial:
    batches = tuple(_batch(number, size, arm, slower) for number, size in enumerate(scenario.sizes, 1))
    looked_at = scenario.looks(compacts=ARMS[arm].merges_on_read)
    looks = tuple(_look(number, arm, slower, scenario) for number in looked_at)
    return Trial(scenario.name, arm, repetition, "options: of this arm", batches, looks)


def _batch(number: int, size: int, arm: str, slower: float) -> BatchFigures:
    write = SPEED[arm] * slower * (0.5 + size / 4_000)
    return BatchFigures(
        records=size,
        bytes=size * 300,
        seconds=write + 0.1,
        stages={"plan": 0.1, "fetch": 0.3, "write": write},
        sink={},
        cpu=SPEED[arm] + size * 1e-4,
        objects_written=10,
        bytes_written=size * 150,
        objects_deleted=1,
        files=10 * number,
        data_files=5 * number,
        bytes_at_rest=size * number * 100,
    )


def _look(number: int, arm: str, slower: float, scenario: Scenario) -> Look:
    since = (number - 1) % 10 if ARMS[arm].merges_on_read else None
    warm = (1.0 + 0.1 * (since or 0)) * slower
    kinds = [kind for kind in Kind if kind is not Kind.READ_OPTIMIZED or ARMS[arm].merges_on_read]
    stale = Staleness(since or 0, 0.5)
    wrong = Wrong("full scan", SPARK, "1 <2>", "3", is_wrong=True)
    misread = Wrong(Kind.INCREMENTAL.value, SPARK, "7", "8", is_wrong=True)
    return Look(
        batches=number,
        events=sum(scenario.sizes[:number]),
        rows=sum(scenario.sizes[:number]) // 2,
        since_compaction=since,
        bytes_at_rest=100_000 * number,
        ideal_bytes=20_000 * number,
        asked=tuple(
            Asked(kind.value, engine, 2 * warm, warm, 0.5, stale if kind is Kind.READ_OPTIMIZED else None)
            for engine in (SPARK, NATIVE)
            for kind in kinds
            if (kind.value, engine) != (misread.kind, misread.engine) or not ARMS[arm].merges_on_read
        ),
        misread=(misread,) if ARMS[arm].merges_on_read else (),
        naive=() if ARMS[arm].has_keys else (wrong,),
    )


def results() -> Results:
    """Three arms, two repetitions; a third one of merge-on-read came to no end."""
    trials = [trial(arm, repetition, slower=1 + 0.2 * repetition) for repetition in range(2) for arm in SPEED]
    trials.append(Trial(SCENARIO.name, "mor", 2, "", (), (), failure="the JVM ended with <1>"))
    counts = [
        Requests(
            SCENARIO.name, arm, 20_000, 11, {"PUT": 110, "GET": 55, "LIST": 11}, {"full scan": {"GET": 7, "LIST": 3}}
        )
        for arm in SPEED
    ]
    return Results("2026-01-31T12:00:00+00:00", setup(), tuple(trials), tuple(counts))
