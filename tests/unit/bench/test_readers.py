"""What the benchmark of readers makes of the trials of a comparison."""

from __future__ import annotations

import pytest

from lakestream_bench.compare.results import Asked, Look, Trial
from lakestream_bench.readers import NoReadingError, Reading, readings, show


def trial(arm: str, first: float, *, failure: str | None = None) -> Trial:
    looks = tuple(
        Look(batches, 100 * batches, 40, None, 1, 1, (Asked("full scan", "spark", first, 0.5, 0.4),))
        for batches in (5, 20)
    )
    return Trial("half-updates", arm, 0, "", (), () if failure else looks, failure)


def test_the_last_look_counts_and_of_repetitions_the_median() -> None:
    found = readings([trial("mor", 3.0), trial("json", 9.0), trial("mor", 1.0), trial("mor", 2.0)])
    assert found == [
        Reading("json", "full scan", "spark", 9.0, 0.5, 0.4, 40, 2000),
        Reading("mor", "full scan", "spark", 2.0, 0.5, 0.4, 40, 2000),
    ]


def test_a_wrong_answer_is_no_reading() -> None:
    with pytest.raises(NoReadingError, match="Hudi merge-on-read: aggregate after 5 batches: 1 row too many"):
        readings([trial("mor", 1.0, failure="aggregate after 5 batches: 1 row too many")])


def test_an_engine_that_was_not_asked_has_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    show(readings([trial("json", 9.0)]))
    head, _, line = capsys.readouterr().out.splitlines()
    assert "Spark" in head
    assert "hudi-rs and DuckDB" in head
    assert line.split() == ["JSON", "full", "scan", "9.00", "0.50"]
