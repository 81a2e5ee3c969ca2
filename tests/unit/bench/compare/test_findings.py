"""From trials to the numbers of the report."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakestream_bench.compare.coefficients import measured
from lakestream_bench.compare.findings import before_and_after, find
from lakestream_bench.compare.method import NATIVE, SPARK
from lakestream_bench.compare.money import load_prices
from lakestream_bench.compare.queries import ALWAYS, Kind
from lakestream_bench.compare.results import Asked, Look, Requests, Trial, TrialStore, load_results
from lakestream_bench.compare.truth import Staleness

from . import made

PRICES = load_prices()
FOUND = find(made.results(), {}, PRICES)[0]


def test_a_trial_that_failed_has_no_part_in_the_figures_and_is_told() -> None:
    mor = next(arm for arm in FOUND.arms if arm.arm == "mor")
    assert mor.repetitions == 2
    assert FOUND.failures == ("No figures of repetition 3: Hudi merge-on-read: the JVM ended with <1>",)


def test_an_arm_that_answered_wrongly_once_has_no_figures() -> None:
    wrong = replace(made.trial("cow", 2), failure="aggregate: right is 1, the answer is 2", is_wrong=True)
    results = made.results()
    found = find(replace(results, trials=(*results.trials, wrong)), {}, PRICES)[0]
    assert [arm.arm for arm in found.arms] == ["json", "mor"]
    assert [bill.arm for bill in found.money.bills] == ["json", "mor"]
    assert any("No figures of all repetitions, since an answer was wrong: Hudi copy" in one for one in found.failures)


def test_a_load_is_of_the_scenario_s_own_events_unless_they_are_given() -> None:
    load = FOUND.money.load
    assert (load.event_bytes, load.new_keys) == (300, 0.5)
    given = find(made.results(), {"event_bytes": 4_096, "new_keys": 1.0}, PRICES)[0].money.load
    assert (given.event_bytes, given.new_keys) == (4_096, 1.0)


def test_compactions_are_no_cost_of_events() -> None:
    """A batch costs 1.5 CPU-seconds and an event 0.1 ms, and each tenth a compaction of three more."""
    trial = made.trial("mor", scenario=made.SCENARIO)
    batches = [
        replace(one, cpu=1.5 + 1e-4 * one.records + (3.0 if number % 10 == 1 and number > 1 else 0.0))
        for number, one in enumerate(trial.batches, 1)
    ]
    found = measured("mor", [replace(trial, batches=tuple(batches))], None)
    assert found.cpu_per_event == pytest.approx(1e-4)
    assert found.cpu_per_batch == pytest.approx(1.5 + 2 * 3.0 / 21)


def test_a_table_does_not_become_quicker_by_its_last_compaction() -> None:
    """A query that takes 1.4 s and then 1.9 s, and 1.0 s behind the compaction, takes longer from look to look."""
    mor = next(arm for arm in FOUND.arms if arm.arm == "mor")
    query = mor.query(Kind.AGGREGATE)
    assert query is not None
    assert query.degradation == pytest.approx(0.5 / 1.4)


def test_an_arm_all_of_whose_trials_failed_is_left_out() -> None:
    broken = [replace(trial, failure="no") if trial.arm == "cow" else trial for trial in made.results().trials]
    found = find(replace(made.results(), trials=tuple(broken)), {}, PRICES)[0]
    assert [arm.arm for arm in found.arms] == ["json", "mor"]
    assert {even.challenger for even in found.money.break_evens} == {"mor"}


def test_requests_that_could_not_be_counted_are_told_and_make_no_arm_cheaper() -> None:
    json, cow, _ = made.results().requests
    wrong = Requests(made.SCENARIO.name, "mor", 0, 0, {}, failure="aggregate: right is 1, the answer is 2")
    for counts in ((json, cow, wrong), (json, cow)):
        found = find(replace(made.results(), requests=counts), {}, PRICES)[0]
        assert found.requests == ()
        assert {bill.by_source["writing: requests"] for bill in found.money.bills} == {0.0}
        told = "No requests are counted: Hudi merge-on-read: aggregate: right is 1, the answer is 2"
        assert (told in found.failures) is (wrong in counts)


def test_figures_are_medians_with_the_range_of_the_repetitions() -> None:
    cow = next(arm for arm in FOUND.arms if arm.arm == "cow")
    slow, fast = (made.trial("cow", slower=slower) for slower in (1.2, 1.0))
    rates = [sum(b.records for b in t.batches) / sum(b.seconds for b in t.batches) for t in (slow, fast)]
    assert (cow.rows_per_second.low, cow.rows_per_second.high) == pytest.approx(tuple(rates))
    assert cow.write_amplification.median == pytest.approx(0.5)
    assert cow.space_amplification.median == pytest.approx(5.0)
    assert cow.files_over_time.values[-1] == 10 * made.SCENARIO.batches


def test_queries_are_compared_before_and_behind_the_same_compaction() -> None:
    mor = next(arm for arm in FOUND.arms if arm.arm == "mor")
    query = mor.query(Kind.AGGREGATE)
    assert query is not None
    assert (query.before.low, query.after.low) == pytest.approx((1.9, 1.0))
    assert mor.aggregate_since_compaction.batches == (0, 9), "that of 4 was of a table a quarter as large"
    before, after = before_and_after(made.trial("mor").looks)
    assert (before.batches, after.batches) == (20, 21)
    before, after = before_and_after(made.trial("mor", scenario=made.SCENARIO.scaled(10)).looks)
    assert (before.batches, after.batches) == (200, 201)
    before, after = before_and_after(made.trial("cow").looks)
    assert (before.batches, after.batches) == (21, 21)


def test_only_read_optimized_answers_lag() -> None:
    mor = next(arm for arm in FOUND.arms if arm.arm == "mor")
    stale = {query.kind: query.stale for query in mor.queries if query.stale}
    assert list(stale) == [Kind.READ_OPTIMIZED.value]
    assert stale[Kind.READ_OPTIMIZED.value].batches == 9


def test_an_engine_lags_as_it_does_and_not_as_another_one() -> None:
    def fresh(asked: Asked) -> Asked:
        return replace(asked, stale=Staleness(0, 0.0)) if asked.stale and asked.engine == NATIVE else asked

    def looked(look: Look) -> Look:
        return replace(look, asked=tuple(map(fresh, look.asked)))

    trials = tuple(replace(trial, looks=tuple(map(looked, trial.looks))) for trial in made.results().trials)
    found = find(replace(made.results(), trials=trials), {}, PRICES)[0]
    mor = next(arm for arm in found.arms if arm.arm == "mor")
    assert {query.engine: query.stale.batches for query in mor.queries if query.stale} == {SPARK: 9, NATIVE: 0}


def test_lines_part_what_a_batch_costs_from_what_an_event_does() -> None:
    found = measured("cow", [made.trial("cow")], made.results().requests[1])
    assert (found.cpu_per_batch, found.cpu_per_event) == pytest.approx((2.0, 1e-4))
    assert (found.writes_per_batch, found.reads_per_batch) == pytest.approx((11.0, 5.0))
    assert (found.writes_per_query, found.reads_per_query) == (3, 7)
    assert measured("cow", [made.trial("cow")], None).writes_per_batch == 0
    # Nobody merges JSON's files: a query opens those of all twelve batches that were there.
    found = measured("json", [made.trial("json")], made.results().requests[0])
    assert (found.writes_per_query, found.reads_per_query) == (0, 0)
    assert (found.writes_per_query_and_batch, found.reads_per_query_and_batch) == pytest.approx((3 / 12, 7 / 12))


def test_a_query_costs_what_its_kind_does_and_not_by_which_kinds_a_look_asked() -> None:
    """Late looks ask for more, and dearer, kinds than early ones; and some tables answer kinds that others do not."""
    dear = {Kind.CHANGES: 9.0, Kind.INCREMENTAL: 5.0, Kind.TIME_TRAVEL: 3.0, Kind.READ_OPTIMIZED: 0.1}
    trial = made.trial("mor")

    def answered(number: int, look: Look) -> Look:
        kinds = [one for one in look.asked if number or one.kind in ALWAYS]
        return replace(look, asked=tuple(replace(one, cpu=dear.get(Kind(one.kind), 0.5)) for one in kinds))

    trial = replace(trial, looks=tuple(answered(number, look) for number, look in enumerate(trial.looks)))
    requests = replace(
        made.results().requests[0],
        reading={"full scan": {"GET": 7, "LIST": 3}, Kind.CHANGES.value: {"GET": 900, "LIST": 900}},
    )
    found = measured("mor", [trial], requests)
    assert (found.query_cpu, found.query_cpu_per_row) == (0.5, 0.0)
    assert (found.writes_per_query, found.reads_per_query) == (3, 7)


def test_a_line_never_says_less_than_nothing() -> None:
    trial = made.trial("json")
    falling = replace(trial, batches=tuple(replace(one, cpu=1 / one.records) for one in trial.batches))
    found = measured("json", [falling], None)
    assert found.cpu_per_event == 0
    assert found.cpu_per_batch > 0


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    made.results().save(file)
    assert load_results(file) == made.results()
    file.write_text("{}")
    with pytest.raises(ValueError, match=r"results\.json has no results of `lakestream compare`"):
        load_results(file)


def test_an_interrupted_comparison_is_taken_up_and_another_setup_begins_anew(tmp_path: Path) -> None:
    store = TrialStore(tmp_path, made.setup())
    assert store.trial(made.SCENARIO, "mor", 0) is None
    store.put(made.SCENARIO, made.trial("mor"))
    store.put(made.SCENARIO, made.results().requests[0])
    again = TrialStore(tmp_path, made.setup(made.SCENARIO, replace(made.SCENARIO, name="more")))
    assert again.trial(made.SCENARIO, "mor", 0) == made.trial("mor")
    assert again.requests(made.SCENARIO, "json") == made.results().requests[0]
    # Another load is another measurement.
    assert again.trial(made.SCENARIO.scaled(2), "mor", 0) is None
    other = TrialStore(tmp_path, replace(made.setup(), versions={"pyspark": "4"}))
    assert other.trial(made.SCENARIO, "mor", 0) is None
    # What took hours is there still for who goes back.
    assert len(other.others) == 1
    assert TrialStore(tmp_path, made.setup()).trial(made.SCENARIO, "mor", 0) == made.trial("mor")


def test_trials_that_were_kept_are_of_the_day_on_which_they_were(tmp_path: Path) -> None:
    store = TrialStore(tmp_path, made.setup())
    trials = [made.trial(arm) for arm in ("cow", "mor")]
    for day, trial in enumerate(trials, 30):
        store.put(made.SCENARIO, trial)
        (file,) = tmp_path.glob(f"*/*.{trial.arm}.*")
        ended = datetime(2026, 1, day, 12, tzinfo=UTC).timestamp()
        os.utime(file, (ended, ended))
    first, last = "2026-01-30T12:00:00+00:00", "2026-01-31T12:00:00+00:00"
    assert store.measured_at([(made.SCENARIO, trials[0])]) == first
    assert store.measured_at((made.SCENARIO, trial) for trial in trials) == f"{first} to {last}"


def test_half_a_file_is_never_taken_for_a_trial(tmp_path: Path) -> None:
    store = TrialStore(tmp_path, made.setup())
    store.put(made.SCENARIO, Trial("half-updates", "cow", 1, "", (), (), failure="no"))
    assert [file.suffix for file in sorted(tmp_path.glob("*/*"))] == [".json", ".json"]
