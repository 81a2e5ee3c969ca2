from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import orjson
import pytest
from rich.console import Console, RenderableType

from lakestream_demo.inspected import Inspection
from lakestream_demo.observed import LoadSeen, Observed, StreamSeen, WriterSeen, rates
from lakestream_demo.report import draw_report
from lakestream_demo.result import CheckResult, DemoResult, Freshness, LoadResult, QueryResult, TableResult
from lakestream_demo.screen import LineScreen
from lakestream_demo.steps import Phase, Timeline
from lakestream_demo.view import draw, running_line


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


EARLIER = Observed(
    at=at(30),
    load=LoadSeen(50_000),
    stream=StreamSeen(50_000, 12),
    writers=(WriterSeen("hudi"), WriterSeen("json", batches=10, records=40_000)),
)
LATER = Observed(
    at=at(36),
    load=LoadSeen(65_000),
    stream=StreamSeen(65_300, 12),
    writers=(WriterSeen("hudi"), WriterSeen("json", 13, 55_000, 54_990, 10, at(34.75), 0.7, 5_000, 1.4)),
)
TIMELINE = Timeline().begin(Phase.SERVERS, 0.0).describe("http://127.0.0.1:4567").begin(Phase.LOAD, 6.0, expected=60.0)

GOOD = CheckResult("JSON files against the ledger", 100, 100, missing=0, doubled=0, altered=0, unexpected=0)
BAD = CheckResult("Hudi table against the JSON files", 90, 91, missing=0, doubled=1, altered=0, unexpected=0)
QUERY = QueryResult("Snapshot", "SELECT status FROM orders", ("status",), (("paid",),), 0.5)
TABLE = TableResult(
    "hudi", "MERGE_ON_READ", "/lake", 90, 4, 2_048, 7, 100, 1, 1.5, Freshness(2.0, 4.0, 80), Freshness(2.5, 44.0, 99)
)


def result(*audit: CheckResult) -> DemoResult:
    load = LoadResult(users=10, seconds=60.0, sent=112, throttled=12, acknowledged=100, failed=0)
    return DemoResult(datetime(2026, 1, 1, tzinfo=UTC), {}, {"load": 60.0}, {}, load, (TABLE,), audit, (QUERY,))


def text(drawn: RenderableType, width: int = 100) -> str:
    output = StringIO()
    Console(width=width, file=output).print(drawn)
    return output.getvalue()


def test_rates_are_taken_over_the_window() -> None:
    speed = rates([EARLIER, LATER])
    assert speed.sent == pytest.approx(2_550)
    assert speed.acknowledged == pytest.approx(2_500)
    assert list(speed.writers) == pytest.approx([0, 2_500])
    assert rates([LATER]).acknowledged == 0.0


def test_drained_means_that_each_writer_has_read_what_the_stream_holds() -> None:
    assert LATER.backlog(LATER.writers[1]) == 10_300
    assert not LATER.drained
    full = tuple(WriterSeen(name, records=65_300) for name in ("hudi", "json"))
    assert Observed(at(40), LATER.load, LATER.stream, full).drained


def test_lag_is_the_age_of_what_was_read_last_and_nothing_at_the_tip() -> None:
    writer = LATER.writers[1]
    assert LATER.lag(writer) == 1.25
    assert replace(LATER, at=at(40)).lag(writer) == 5.25
    assert replace(LATER, stream=StreamSeen(55_000)).lag(writer) == 0.0
    assert LATER.lag(WriterSeen("hudi")) is None


def test_the_view_shows_each_part_of_the_pipeline() -> None:
    drawn = text(draw("headline", TIMELINE, [EARLIER, LATER], now=36.0))
    assert "headline" in drawn
    assert "✓  Kinesis         http://127.0.0.1:4567" in drawn
    assert "30 of 60 s" in drawn
    lines = drawn.splitlines()
    cells = {row.split("  ")[0]: row.split() for row in lines}
    assert cells["sent"][1:] == ["65,312", "2,550"]
    assert cells["acknowledged"][1:] == ["65,000", "2,500"]
    assert cells["written, hudi"][2:] == ["starting"]
    assert cells["written, json"][2:5] == ["55,000", "2,500", "10,300"]
    assert "5,000 in 0.7 s" in drawn
    assert "12 throttled" in drawn


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_view_fits_the_terminal(width: int) -> None:
    drawn = text(draw("headline", TIMELINE, [EARLIER, LATER], now=36.0), width)
    assert all(len(row) <= width for row in drawn.splitlines())
    assert "1.4 s" in drawn, "the last column is cut off"
    assert "…" not in drawn, "figures are cut off"


def test_a_line_says_the_same_in_short() -> None:
    assert running_line(TIMELINE.steps[-1], [EARLIER, LATER], 36.0) == (
        "  load             30.0 s  sent 65,312, acknowledged 65,000 (2,500/s) | 12 throttled (sent again)"
        " | hudi wrote 0, lag – | json wrote 55,000, lag 1.2 s"
    )


def test_lines_come_when_a_phase_has_ended_and_every_few_seconds() -> None:
    output = StringIO()
    screen = LineScreen(Console(width=300, file=output))
    checks = Timeline().begin(Phase.CHECKS, 100.0).describe("Java 17")
    for now in (100.0, 101.0, 104.9, 105.0, 105.1):
        screen.show(checks, (), now)
    servers = checks.begin(Phase.SERVERS, 105.2).describe("http://127.0.0.1:4567")
    screen.show(servers, (), 105.2)
    screen.show(servers.fail(106.2), (), 106.2)
    assert output.getvalue().splitlines() == [
        "  Java, jars        0.0 s  Java 17",
        "  Java, jars        5.0 s  Java 17",
        "✓ Java, jars        5.2 s  Java 17",
        "✗ Kinesis           1.0 s  http://127.0.0.1:4567",
    ]


def test_seconds_are_those_of_phases_that_ended() -> None:
    assert TIMELINE.seconds() == {"servers": 6.0}
    assert TIMELINE.end(70.0).end(80.0).seconds() == {"servers": 6.0, "load": 64.0}


def test_a_run_passes_only_if_each_check_does() -> None:
    assert result(GOOD).passed
    assert not result(GOOD, BAD).passed
    assert not result().passed


@pytest.mark.parametrize("width", [80, 120, 160])
def test_the_report_shows_tables_queries_and_verdict(width: int) -> None:
    passed, failed = (
        text(draw_report(result(GOOD), ".demo"), width),
        text(draw_report(result(GOOD, BAD), ".demo"), width),
    )
    assert "SELECT status FROM orders" in passed
    assert "hudi: MERGE_ON_READ" in passed
    assert "2.0 KiB" in passed
    rows = [row.split() for row in passed.splitlines()]
    assert ["hudi:", "MERGE_ON_READ", "7", "1.50", "2.0", "s", "4.0", "s", "2.5", "s", "44.0", "s"] in rows
    assert "…" not in passed
    assert "PASSED  All 100 acknowledged records are in the lake" in passed
    assert "✓ JSON files against" in failed
    assert "✗ Hudi table against" in failed
    assert "FAILED" in failed


def test_the_result_is_versioned_and_says_whether_it_passed() -> None:
    fields = orjson.loads(result(GOOD, BAD).to_json())
    assert fields["version"] == 2
    assert fields["passed"] is False
    [table] = fields["tables"]
    assert table["freshness_warm"] == {"p50_seconds": 2.0, "p99_seconds": 4.0, "records": 80}
    assert table["freshness_all"] == {"p50_seconds": 2.5, "p99_seconds": 44.0, "records": 99}


def test_a_writer_that_was_never_warm_has_no_figures_of_that() -> None:
    cold = replace(result(GOOD), tables=(replace(TABLE, freshness_warm=None),))
    assert ["hudi:", "MERGE_ON_READ", "7", "1.50", "–", "–", "2.5", "s", "44.0", "s"] in [
        row.split() for row in text(draw_report(cold, ".demo")).splitlines()
    ]


def test_an_inspection_survives_the_way_between_processes() -> None:
    inspection = Inspection((TABLE,), (GOOD, BAD), (QUERY,), {"audit": 1.5})
    assert Inspection.from_json(inspection.to_json()) == inspection
