"""One recorded history for all tables, from a local Kinesis."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from lakestream_bench.compare.history import recorded
from lakestream_bench.compare.scenarios import Scenario

SMALL = Scenario("small", "longevity", "", 0.5, batches=3, rows=10)
WIDE = Scenario("wide", "longevity", "", 0.5, batches=3, rows=10, wider=1_000)


def test_plans_tile_the_stream_as_it_was_filled_and_events_may_be_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    notes = []
    for scenario in (SMALL, WIDE, WIDE):
        with recorded(scenario) as history:
            assert [plan.batch for plan in history.plans] == [0, 1, 2]
            assert history.truth.events["_batch"].to_pylist() == [0] * 4 + [1] * 10 + [2] * 16
            notes.append(history.truth.events["note"])
    small, wide, again = notes
    assert pc.sum(pc.utf8_length(wide)).as_py() == pc.sum(pc.utf8_length(small)).as_py() + 30 * 1_000
    assert wide == again
    assert len(set(wide.to_pylist())) == 30
