"""The run as one HTML file, plots first: `report.html`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from lakestream_api import Progress
from lakestream_demo.history import History, Moment, WriterMoment, per_second
from lakestream_demo.observed import WINDOW
from lakestream_demo.result import CheckResult, DemoResult, QueryResult
from lakestream_demo.sheets import AUDIT_HEAD, FRESH, MEANING, Sheet, fresh, made, verdict
from lakestream_demo.steps import TITLES
from lakestream_pages.frame import document, key, table
from lakestream_pages.plots import Plot, Series, thin

_STREAM = "var(--grey)"
_COLORS = ("var(--ours)", "var(--amber)")
_POINTS = 400
_HEIGHT = 230
Line = list[tuple[float, float]]


def page(result: DemoResult, history: History, batches: Mapping[str, Sequence[Progress]]) -> str:
    """The whole document. Captions name the file beside it that has their numbers.

    Args:
        result: of the run.
        history: of the run.
        batches: of each writer, in the order that `result` has them.
    """
    kinds = {one.writer: f"{one.writer}: {one.kind}" for one in result.tables}
    colors = dict(zip(kinds, _COLORS, strict=True))
    body = [
        _introduction(result),
        key({"sent": _STREAM} | {kinds[name]: color for name, color in colors.items()}),
        f'<div class="pair">{"".join(plot.svg() for plot in _plots(history, batches, colors))}</div>',
        '<p class="small">history.json: moments[] (records, backlog, lag; rates are over '
        f"{WINDOW.total_seconds():.0f} s); progress/*.jsonl: freshness of each batch, p50, and dashed p99. "
        "The watch begins with the warm-up.</p>",
        "<h2>Is it right?</h2>",
        _audit(result.audit),
        "<h2>What was sent and made</h2>",
        _sent(result),
        _sheet(made(result), "result.json: tables[]; the stream's are load.acknowledged"),
        "<h2>How fresh it was</h2>",
        _sheet(fresh(result.tables), f"result.json: tables[]. {FRESH}"),
        "<h2>Three looks at the Hudi table</h2>",
        *(_query(number, query) for number, query in enumerate(result.queries)),
        "<h2>How it was run</h2>",
        _run(result),
    ]
    return document("LakeStream demo", "".join(body))


def _introduction(result: DemoResult) -> str:
    mark, word = ("ok", "PASSED") if result.passed else ("miss", "FAILED")
    settings = result.settings
    return (
        f'<p><b class="{mark}">{word}</b> {escape(verdict(result))}</p>'
        f"<p>{result.load.users:,} users sent {settings['events']:,} events/s for {settings['duration']} through "
        f"a local Kinesis of {settings['shards']} shards, on {result.started_at:%Y-%m-%d %H:%M} UTC; one application "
        f"each for {escape(' and '.join(one.kind for one in result.tables))}, all on this machine. Every number is in "
        "a file beside this one.</p>"
    )


def _plots(
    history: History, batches: Mapping[str, Sequence[Progress]], colors: Mapping[str, str]
) -> tuple[Plot, Plot, Plot, Plot]:
    end = max(history.moments[-1].seconds, history.load_ended)
    marks = ((history.load_began, "load"), (history.load_ended, "drain"))
    window = WINDOW.total_seconds()

    def plot(title: str, unit: str, series: Sequence[Series]) -> Plot:
        return Plot(title, unit, series, end, height=_HEIGHT, time="seconds", marks=marks)

    def each(line: Line, name: str) -> Series:
        return Series(name, colors[name], thin(line, _POINTS), width=2)

    counts = {name: _of(history.moments, name) for name in colors}
    sent: Line = [(moment.seconds, moment.records) for moment in history.moments]
    rates = [Series("sent", _STREAM, thin(per_second(sent, window), _POINTS), width=2)]
    rates += [each(per_second([(at, one.records) for at, one in line], window), name) for name, line in counts.items()]
    waiting = [each([(at, float(one.backlog)) for at, one in line], name) for name, line in counts.items()]
    lags = [
        each([(at, one.lag_seconds) for at, one in line if one.lag_seconds is not None], name)
        for name, line in counts.items()
    ]
    visible = [line for name in colors for line in _freshness(history, batches[name], name, colors[name])]
    return (
        plot("Sent, and written", "records/s", rates),
        plot("Lag: age of what was read last", "s", lags),
        plot("Freshness of each batch: from arrival to visible", "s", visible),
        plot("Sent and not yet in the table", "records", waiting),
    )


def _of(moments: Sequence[Moment], name: str) -> list[tuple[float, WriterMoment]]:
    return [(moment.seconds, moment.writers[name]) for moment in moments]


def _freshness(history: History, batches: Sequence[Progress], name: str, color: str) -> tuple[Series, Series]:
    """The medians, and the 99th percentiles."""
    seen = [
        ((batch.finished_at - history.began_at).total_seconds(), batch.freshness)
        for batch in batches
        if batch.freshness is not None and batch.finished_at >= history.began_at
    ]
    halves = thin([(at, one.p50_seconds) for at, one in seen], _POINTS)
    most = thin([(at, one.p99_seconds) for at, one in seen], _POINTS)
    return Series(f"{name}, p50", color, halves, width=2), Series(f"{name}, p99", color, most, dash="4 3")


def _audit(checks: Sequence[CheckResult]) -> str:
    rows = []
    for check in checks:
        mark = '<b class="ok">✓</b>' if check.passed else '<b class="miss">✗</b>'
        wrong = (
            f'<b class="miss">{count:,}</b>' if count else "0"
            for count in (check.missing, check.doubled, check.altered, check.unexpected)
        )
        rows.append([f"{mark} {escape(check.name)}", f"{check.expected:,}", f"{check.found:,}", *wrong])
    return table(AUDIT_HEAD, rows, f"result.json: audit[]. {escape(MEANING)}")


def _sent(result: DemoResult) -> str:
    load = result.load
    counts = (
        ("arrived at Kinesis", load.sent),
        ("of them refused for a shard's limit, and sent again", load.throttled),
        ("acknowledged", load.acknowledged),
        ("given up", load.failed),
    )
    return table(("records", ""), [(what, f"{count:,}") for what, count in counts], "result.json: load")


def _sheet(sheet: Sheet, caption: str) -> str:
    return table(sheet.head, ([escape(cell) for cell in row] for row in sheet.rows), escape(caption))


def _query(number: int, query: QueryResult) -> str:
    rows = ([escape(cell) for cell in row] for row in query.rows)
    head = [escape(column) for column in query.columns]
    return (
        f"<h3>{escape(query.name)}</h3><pre>{escape(query.sql)}</pre>"
        f"{table(head, rows, f'result.json: queries[{number}]; {query.seconds:.1f} s')}"
    )


def _run(result: DemoResult) -> str:
    titles = {phase.value: title for phase, title in TITLES.items()}
    phases = [(escape(titles.get(name, name)), f"{seconds:.1f}") for name, seconds in result.seconds.items()]
    settings = [(escape(name), escape(str(value))) for name, value in result.settings.items()]
    return (
        f"{table(('phase', 's'), phases, 'result.json: seconds')}"
        f"{table(('setting', ''), settings, 'result.json: settings; the whole document is lakestream.yaml')}"
    )
