"""Demand and capacity: what a step comes to, how loads are searched, what the model says, what the page draws."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.testing.progress import progress_with
from lakestream_api import Freshness, Progress
from lakestream_bench.scalability.__main__ import find, main
from lakestream_bench.scalability.figures import Measured, Step, demand_of, judge, load_scalability
from lakestream_bench.scalability.measuring import LOADS, Setting, search
from lakestream_bench.scalability.modelling import capacity, demand
from lakestream_bench.scalability.page import scalability
from lakestream_bench.simulation.costs import BatchCosts, StageCost, load_costs

START = datetime(2026, 1, 1, tzinfo=UTC)
COSTS = load_costs("mor")
SETTING = Setting("mor", interval_seconds=2, goal_seconds=10.0, step_seconds=20.0)


def batch(at: float, p50: float, p99: float) -> Progress:
    return progress_with(
        writer="mor",
        batch=0,
        finished_at=START + timedelta(seconds=at),
        freshness=Freshness(p50_seconds=p50, p99_seconds=p99),
    )


def step(load: float, *, kept: bool, sent: float | None = None) -> Step:
    return Step(load, load if sent is None else sent, 5, 1.0, 0.0, kept)


def test_a_load_is_kept_while_records_are_fresh_and_the_lag_does_not_grow() -> None:
    flat = judge(100, 100, [batch(at, 3.0, 6.0) for at in range(0, 24, 4)], goal=10)
    assert (flat.kept, flat.oldest_seconds, flat.batches) == (True, 6.0, 6)
    growing = judge(100, 100, [batch(at, 3.0 + 0.2 * at, 9.0) for at in range(0, 24, 4)], goal=10)
    assert growing.kept is False
    assert growing.trend == pytest.approx(0.2)
    assert judge(100, 100, [batch(0, 3.0, 6.0), batch(4, 3.0, 10.5)], goal=10).kept is False


def test_what_a_load_takes_to_come_to_its_lag_is_no_trend() -> None:
    coming = [batch(at, age, 6.0) for at, age in ((0, 0.5), (3, 1.5), (6, 2.5))]
    found = judge(100, 100, [*coming, *(batch(at, 3.0, 6.0) for at in range(9, 27, 3))], goal=10)
    assert (found.kept, found.trend) == (True, pytest.approx(0.0))
    assert judge(100, 100, [batch(at, 3.0 + at, 9.0) for at in range(5)], goal=10).trend is None


def test_a_compaction_is_no_trend() -> None:
    ages = (3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 5.0, 3.0)
    found = judge(100, 100, [batch(3 * number, age, 6.0) for number, age in enumerate(ages)], goal=10)
    assert found.trend == pytest.approx(0.0)


def test_where_nothing_is_committed_nothing_is_kept() -> None:
    assert judge(100, 100, [], goal=10) == Step(100, 100, 0, None, None, kept=False)


def test_a_load_that_could_not_be_sent_says_nothing_of_capacity() -> None:
    assert Measured(1, (step(500, kept=True), step(1_000, kept=True, sent=900))).capacity == 500


@given(true=st.integers(0, 20_000), known=st.sampled_from((0, *LOADS)))
def test_the_search_finds_the_highest_load_that_is_kept(true: int, known: int) -> None:
    steps = search(LOADS, min(known, true), lambda load: step(load, kept=load <= true))
    # What fewer slots have kept is tried again only where nothing lies between.
    expected = max((load for load in LOADS if load <= true), default=0.0)
    found = Measured(2, tuple(steps)).capacity
    assert found == expected or min(known, true) >= expected == max(found, expected)
    assert len(steps) <= 4


def test_demand_is_that_of_the_fewest_slots() -> None:
    measured = [Measured(1, (step(500, kept=True),)), Measured(2, (step(1_000, kept=True),))]
    assert [demand_of(measured, load) for load in (500, 501, 1_000, 1_001)] == [1, 2, 2, None]


def test_the_model_needs_more_slots_for_more_and_is_its_own_inverse() -> None:
    found = [demand(shards, COSTS, 2, 10) for shards in (4, 16, 256, 1_000, 10_000)]
    needs = [one.slots for one in found if one is not None]
    assert len(needs) == len(found)
    assert needs == sorted(needs)
    # No fewer than the cores that the records keep busy, and not many times as many.
    busy = 10_000 * 1_000 * COSTS.per_record
    assert busy < needs[-1] < 4 * busy
    one, two = (capacity(slots, 16, COSTS, 2, 10).records_per_second for slots in (1, 2))
    assert 0 < one < two < 2.5 * one


def test_the_figures_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "scalability.json"
    assert load_scalability(file) is None
    found = find([Measured(1, (step(500, kept=True), step(1_000, kept=False)))], SETTING, COSTS, load_average=0.5)
    found.save(file)
    assert load_scalability(file) == found
    assert found.measured_to == 500
    file.write_text('{"shards": 1}')
    with pytest.raises(ValueError, match=r"scalability\.json: not written by"):
        load_scalability(file)


def test_the_page_has_dots_for_what_was_measured_and_a_line_where_the_model_begins() -> None:
    measured = [Measured(1, (step(500, kept=True), step(1_000, kept=False))), Measured(2, (step(1_000, kept=True),))]
    found = find(measured, SETTING, COSTS, load_average=0.5)
    text = scalability(found)
    assert text.count("<circle") == 4
    assert text.count("modelled from here on") == 2
    marks = [float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]* class="goal"/>', text)]
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', text)]
    # The line is at the last of the dots.
    assert marks[0] == pytest.approx(max(dots[:2]))
    assert marks[1] == pytest.approx(max(dots[2:]))
    assert "nan" not in text.lower()


def test_where_nothing_was_kept_the_page_says_below_what() -> None:
    found = find([Measured(1, (step(500, kept=False),))], SETTING, COSTS, load_average=9.0)
    text = scalability(found)
    assert "below 500" in text
    assert "modelled from here on" not in text
    assert scalability(replace(found, measured=())) != text


def test_a_goal_that_no_number_of_slots_keeps_has_no_demand() -> None:
    stage = StageCost(fixed=6.0, per_record=1e-4, residual=0.1)
    costs = BatchCosts("mor", stage, stage, "a slow machine")
    assert demand(4, costs, 2, 10) is None
    found = find([Measured(1, (step(500, kept=False),))], SETTING, costs, load_average=9.0)
    assert [one.records_per_second for one in found.modelled_capacity] == [0.0]
    text = scalability(found)
    assert "By it no number of slots keeps the goal" in text
    assert "<td>0</td>" in text


@pytest.mark.parametrize(("content", "told"), [(None, "No such file"), ("{}", "has no costs of a writer 'mor'")])
def test_costs_that_cannot_be_read_are_told_before_anything_is_measured(
    content: str | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fit.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr("sys.argv", ["scalability", "--out", str(tmp_path / "out.json"), "--fit", str(file)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "error: --fit: " in (said := capsys.readouterr().err)
    assert told in said
