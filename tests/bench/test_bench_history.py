"""One recorded history for all tables, from a local Kinesis."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow.compute as pc
import pytest

from lakestream.kinesis import Planner
from lakestream.model import BatchPlan
from lakestream_bench.compare.history import recorded
from lakestream_bench.compare.scenarios import Scenario

SMALL = Scenario("small", "longevity", "", 0.5, batches=3, rows=10)
WIDE = Scenario("wide", "longevity", "", 0.5, batches=3, rows=10, wider=1_000)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")


def test_plans_tile_the_stream_as_it_was_filled_and_events_may_be_wider() -> None:
    notes = []
    for scenario in (SMALL, WIDE, WIDE):
        with recorded(scenario) as history:
            assert [plan.batch for plan in history.plans] == [0, 1, 2]
            assert history.truth.events["_batch"].to_pylist() == [0] * 10 + [1] * 4 + [2] * 16
            notes.append(history.truth.events["note"])
    small, wide, again = notes
    assert pc.sum(pc.utf8_length(wide)).as_py() == pc.sum(pc.utf8_length(small)).as_py() + 30 * 1_000
    assert wide == again
    assert len(set(wide.to_pylist())) == 30


def test_a_plan_by_a_clock_that_is_behind_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planner.plan
    early: list[BatchPlan] = []

    def plan(self: Planner, **given: object) -> BatchPlan | None:
        found = planned(self, **given)  # type: ignore[arg-type]
        if found is not None and len(early) <= found.batch:
            early.append(found)
            return replace(found, horizon=found.horizon - timedelta(seconds=1.5))
        return found

    monkeypatch.setattr(Planner, "plan", plan)
    with recorded(SMALL) as history:
        assert len(early) == 3
        for one, arrived in zip(history.plans, history.arrived, strict=True):
            assert one.horizon > arrived - timedelta(seconds=1)
