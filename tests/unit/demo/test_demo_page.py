from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import orjson
import pytest

from lakestream.testing.progress import progress_with
from lakestream_api import Freshness as BatchFreshness
from lakestream_api import Progress
from lakestream_demo.history import History, Moment, WriterMoment, per_second
from lakestream_demo.observed import LoadSeen, Observed, StreamSeen, WriterSeen
from lakestream_demo.page import page
from lakestream_demo.result import CheckResult, DemoResult, Freshness, LoadResult, QueryResult, TableResult

START = datetime(2026, 1, 1, tzinfo=UTC)
HUDI = TableResult("hudi", "MERGE_ON_READ", "/lake", 90, 4, 2_048, 7, 100, 1, 1.5, Freshness(2.0, 4.0, 80), None)
TABLES = (HUDI, replace(HUDI, writer="json", kind="JSON"))
GOOD = CheckResult("ledger → JSON files", 100, 100, missing=0, doubled=0, altered=0, unexpected=0)
BAD = replace(GOOD, name="JSON files → <table>", doubled=1_234)
QUERY = QueryResult("Snapshot", "SELECT a FROM t WHERE b < 3", ("status",), (("<paid>",),), 0.5)
RESULT = DemoResult(
    started_at=START,
    settings={"events": 2_500, "shards": 4, "duration": "60s"},
    seconds={"load": 60.0, "total": 60.0},
    inspection_seconds={},
    load=LoadResult(users=10, seconds=60.0, sent=112, throttled=12, acknowledged=100, failed=0),
    tables=TABLES,
    audit=(GOOD,),
    queries=(QUERY,),
)
VOID = {"meta", "br", "line"}


def moment(seconds: float, records: int, hudi: int, lag: float | None) -> Moment:
    writers = {"hudi": WriterMoment(hudi, records - hudi, lag), "json": WriterMoment(records, 0, 0.0)}
    return Moment(seconds, records, 0, writers)


HISTORY = History(
    began_at=START,
    load_began=10.0,
    load_ended=70.0,
    moments=(moment(0.0, 0, 0, None), moment(10.0, 20, 10, 3.0), moment(75.0, 100, 100, 0.0)),
)


def batch(finished: float, freshness: BatchFreshness | None) -> Progress:
    return progress_with(
        finished_at=START + timedelta(seconds=finished),
        freshness=freshness,
    )


SEEN = BatchFreshness(p50_seconds=1.5, p99_seconds=2.5)
BATCHES = {"hudi": [batch(-3.0, SEEN), batch(5.0, SEEN), batch(9.0, None), batch(40.0, SEEN)], "json": []}


class Reader(HTMLParser):
    """Fails at an element that is not closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.lines: dict[str, str] = {}
        """Plotted lines by their titles, `plot: line`."""
        self.plot = ""
        self.path = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert "src" not in given
        assert tag != "link"
        if tag not in VOID:
            self.open.append(tag)
        if tag == "svg":
            self.plot = given["aria-label"] or ""
        self.path = (given["d"] or "") if tag == "path" else self.path

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.open[-2:] == ["path", "title"]:
            self.lines[f"{self.plot.split(':')[0]}: {data}"] = self.path


def test_the_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    read = Reader(page(RESULT, HISTORY, BATCHES))
    assert read.open == []
    assert "<paid>" in read.text
    assert "SELECT a FROM t WHERE b < 3" in read.text


def test_plots_come_first_and_the_audit_next() -> None:
    text = page(RESULT, HISTORY, BATCHES)
    assert text.index("PASSED") < text.index("<svg") < text.index("Is it right?") < text.index("<table")


def test_every_line_is_drawn_and_batches_before_the_watch_are_not() -> None:
    lines = Reader(page(RESULT, HISTORY, BATCHES)).lines
    assert set(lines) == {
        *("Sent, and written: sent", "Sent, and written: hudi", "Sent, and written: json"),
        *("Lag: hudi", "Lag: json", "Sent and not yet in the table: hudi", "Sent and not yet in the table: json"),
        *("Freshness of each batch: hudi, p50", "Freshness of each batch: hudi, p99"),
        *("Freshness of each batch: json, p50", "Freshness of each batch: json, p99"),
    }
    # A move to the first point and a line to the second: of four batches one was before, and one had no records.
    assert lines["Freshness of each batch: hudi, p50"].count("L") == 1
    # Before its first batch a writer has no lag.
    assert (lines["Lag: hudi"].count("L"), lines["Lag: json"].count("L")) == (1, 2)


def test_a_failed_audit_is_said_first_and_counted() -> None:
    text = page(replace(RESULT, audit=(GOOD, BAD)), HISTORY, BATCHES)
    assert text.index('<b class="miss">FAILED</b>') < text.index("<svg")
    assert '<b class="miss">1,234</b>' in text
    assert "JSON files → &lt;table&gt;" in text


def test_rates_are_over_the_seconds_before() -> None:
    points = [(0.0, 0.0), (1.0, 10.0), (2.0, 40.0), (4.0, 100.0), (9.0, 100.0)]
    # Over 0–1, 0–2, 2–4 and 4–9: what was seen last before the window begins counts.
    assert per_second(points, 2.0) == [(1.0, 10.0), (2.0, 20.0), (4.0, 30.0), (9.0, 0.0)]
    assert per_second(points[:1], 2.0) == []


def test_a_moment_keeps_what_was_seen() -> None:
    seen = Observed(
        at=START + timedelta(seconds=8),
        load=LoadSeen(100),
        stream=StreamSeen(records=100, throttled=7),
        writers=(WriterSeen("hudi"), WriterSeen("json", batches=2, records=80, read_until=START)),
    )
    assert Moment.of(seen, 8.00049) == Moment(
        8.0, 100, 7, {"hudi": WriterMoment(0, 100, None), "json": WriterMoment(80, 20, pytest.approx(8.0))}
    )


def test_the_history_is_json() -> None:
    fields = orjson.loads(HISTORY.to_json())
    assert fields["load_ended"] == 70.0
    assert fields["moments"][1]["writers"]["hudi"] == {"records": 10, "backlog": 10, "lag_seconds": 3.0}
