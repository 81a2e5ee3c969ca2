"""The report: one HTML file without anything from outside, plots first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.costs_page import COSTS_STYLE, START, costs
from lakestream_bench.compare.findings import ArmFindings, Curve, QueryFindings, ScenarioFindings
from lakestream_bench.compare.method import ENGINES, Spread
from lakestream_bench.compare.money import Prices
from lakestream_bench.compare.queries import Kind
from lakestream_bench.compare.results import Results
from lakestream_bench.compare.rivals_page import rivals
from lakestream_bench.compare.scenarios import DECADE, INTERVALS
from lakestream_bench.rivals import Rivalry
from lakestream_bench.scalability.figures import Scalability
from lakestream_bench.scalability.page import scalability as scalability_section
from lakestream_pages.frame import document, key, ranged, table
from lakestream_pages.plots import Plane, Plot, Point, Series

_STYLE = """
div.words{white-space:normal;width:min(44ch,60vw);overflow-wrap:anywhere;text-align:left}
"""
TITLE = "LakeStream: what each table costs, and what it answers"


def page(
    results: Results,
    found: Sequence[ScenarioFindings],
    prices: Prices,
    scalability: Scalability | None = None,
    rivalry: Rivalry | None = None,
) -> str:
    """The whole document. Captions name the place of their numbers in the JSON files beside it.

    Args:
        results: what was measured.
        found: what it comes to.
        prices: that the bills are of.
        scalability: what `python -m lakestream_bench.scalability` found; None: it was not run.
        rivalry: what `python -m lakestream_bench.rivals` found; None: it was not run.
    """
    body = [_introduction(results, found)]
    body += [_scenario(number, one, prices) for number, one in enumerate(found)]
    body += [] if scalability is None else [scalability_section(scalability)]
    body += [] if rivalry is None else [rivals(rivalry)]
    body += [_setup(results), START]
    return document(TITLE, "".join(body), _STYLE + COSTS_STYLE)


def _introduction(results: Results, found: Sequence[ScenarioFindings]) -> str:
    repetitions = max((arm.repetitions for one in found for arm in one.arms), default=0)
    machine = results.setup.machine
    return (
        "<p>The same batches of order events went from one recorded sequence of plans into each table, through the "
        "driver's own engine. Every row of every table, and every answer that was timed, was held against the ledger "
        "of what was sent: <b>a table that is wrong has no figures here</b>.</p>"
        f"<p>{repetitions} repetition{'s' if repetitions != 1 else ''}, in rotated order; figures are medians, with "
        f"the range below them. {escape(machine.get('processor', ''))}, {escape(machine.get('cores', '?'))} cores, "
        f"{escape(machine.get('memory', '?'))}; local disk; {escape(results.measured_at)}. Every number is in "
        "<code>results.json</code> (what was measured) or <code>findings.json</code> (what it comes to) beside this "
        "file.</p>"
    )


def _scenario(number: int, found: ScenarioFindings, prices: Prices) -> str:
    scenario = found.scenario
    head = (
        f'<h2 id="{escape(scenario.name)}">{escape(scenario.name)}: {escape(scenario.story)}</h2>'
        f'<p class="small">LST-Bench\'s package: {escape(scenario.package)}. {scenario.batches} batches of '
        f"{min(scenario.sizes):,} to {max(scenario.sizes):,} events, {scenario.updates:.0%} updates, "
        f"{scenario.deletes:.0%} deletes, {scenario.late:.0%} late, {scenario.days} partitions"
        f"{f', {scenario.wider:,} letters more in each event' if scenario.wider else ''}"
        f"{f', customers by Zipf with exponent {scenario.zipf}' if scenario.zipf else ''}.</p>"
    )
    failures = "".join(f'<p class="miss">{escape(text)}</p>' for text in found.failures)
    if not found.arms:
        return head + failures
    return "".join(
        [
            head,
            failures,
            key({arm.title: arm.color for arm in found.arms}),
            f'<div class="pair">{"".join(_plots(found))}</div>',
            _writing(number, found),
            _asking(number, found),
            _beside(number, found),
            _wrong(number, found),
            _requests(number, found),
            # Readers used CPU while batches were written: the bills of both would be mixed up.
            "" if scenario.has_readers else costs(number, found, prices),
        ]
    )


def _plots(found: ScenarioFindings) -> Iterable[str]:
    arms, batches = found.arms, found.scenario.batches
    frontier = [_frontier(arm) for arm in arms]
    yield Plane(
        "Freshness and query time: lower left is better",
        f"age of events when visible, p50, s; a batch every {arms[0].usual_freshness.interval:g} s",
        "aggregate, warm, s",
        [point for point in frontier if point is not None],
        height=260,
    ).svg()
    most = max((commits for arm in arms for commits in arm.aggregate_since_compaction.batches), default=0) or 1
    yield Plot(
        "Query time since the last compaction (aggregate)",
        "s, warm",
        [_since_compaction(arm, most) for arm in arms],
        most,
        height=260,
        time="commits; dashed: without compaction",
    ).svg()
    files = [Series(arm.title, arm.color, _points(arm.files_over_time), width=2) for arm in arms]
    yield Plot("Files in the table's folder", "files", files, batches, height=220, time="batches", whole=True).svg()
    work = [Series(arm.title, arm.color, _points(arm.work_over_time), width=2) for arm in arms]
    yield Plot("Seconds of work for so many batches", "s", work, batches, height=220, time="batches").svg()


def _since_compaction(arm: ArmFindings, most: int) -> Series:
    points = _points(arm.aggregate_since_compaction)
    if len(points) == 1:
        return Series(arm.title, arm.color, [(0, points[0][1]), (most, points[0][1])], width=2, dash="5 4")
    return Series(arm.title, arm.color, points, width=2)


def _points(curve: Curve) -> list[tuple[float, float]]:
    return [(float(x), y) for x, y in zip(curve.batches, curve.values, strict=True)]


def _frontier(arm: ArmFindings) -> Point | None:
    query = arm.query(Kind.AGGREGATE)
    if query is None:
        return None
    fresh = arm.usual_freshness.p50
    seconds = query.before
    return Point(arm.title, arm.color, fresh, seconds.median, (fresh, fresh), (seconds.low, seconds.high))


Cell = tuple[str, Callable[[ArmFindings], str]]


def _spread(get: Callable[[ArmFindings], Spread], form: str) -> Callable[[ArmFindings], str]:
    return lambda arm: ranged(get(arm).text(form))


def _freshness(place: int, arm: ArmFindings) -> str:
    found = arm.freshness[place]
    return f"{found.p50:.1f} / {found.p99:.1f}"


_WRITING: tuple[Cell, ...] = (
    ("events/s, backlog", _spread(lambda arm: arm.rows_per_second, ",.0f")),
    ("batch, s", _spread(lambda arm: arm.batch_seconds, ".2f")),
    ("… by quarter of the batches", lambda arm: arm.batch_seconds_by_quarter.text(".1f")),
    ("of it plan, s", lambda arm: f"{arm.stages.get('plan', 0):.2f}"),
    ("fetch, s", lambda arm: f"{arm.stages.get('fetch', 0):.2f}"),
    ("write, s", lambda arm: f"{arm.stages.get('write', 0):.2f}"),
    *(
        (f"freshness p50 / p99, s, a batch every {interval:g} s", partial(_freshness, place))
        for place, interval in enumerate(INTERVALS)
    ),
    ("CPU-s per million events", _spread(lambda arm: arm.cpu_per_million, ",.0f")),
    ("… by quarter of the batches", lambda arm: arm.cpu_per_million_by_quarter.text(",.0f")),
    ("write amplification", _spread(lambda arm: arm.write_amplification, ".2f")),
    ("space amplification", _spread(lambda arm: arm.space_amplification, ".1f")),
    ("objects written per batch", _spread(lambda arm: arm.objects_written_per_batch, ".1f")),
    ("deleted per batch", _spread(lambda arm: arm.objects_deleted_per_batch, ".1f")),
    ("files at the end", _spread(lambda arm: arm.files, ",.0f")),
    ("degradation per batch", lambda arm: _percent(arm.batch_degradation)),
)


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:+.1%}"


def _writing(number: int, found: ScenarioFindings) -> str:
    rows = [[name, *(cell(arm) for arm in found.arms)] for name, cell in _WRITING]
    return "<h3>Writing</h3>" + table(
        ["", *(escape(arm.title) for arm in found.arms)],
        rows,
        f"findings.json: [{number}].arms[]. Freshness: events come evenly, and batches take what was measured. "
        "Write amplification: bytes of files written "
        "through bytes of the records; what comes and goes within a batch is not seen. Space amplification: bytes at "
        "rest through those of the living orders in one Parquet file. Degradation: LST-Bench's rate, over batches of "
        "the same size. CPU: of the JVM and its Python workers, compaction and cleaning included.",
    )


_STATES = ("cold", "warm, before compaction", "warm, after")


def _asking(number: int, found: ScenarioFindings) -> str:
    kinds = list(dict.fromkeys(query.kind for arm in found.arms for query in arm.queries))
    tables = []
    for engine, title in ENGINES.items():
        rows = []
        for kind in map(Kind, kinds):
            asked = [arm.query(kind, engine) for arm in found.arms]
            rows += [[f"<b>{escape(kind)}</b>, {state}", *(_asked(one, state) for one in asked)] for state in _STATES]
            rates = ["–" if one is None else _percent(one.degradation) for one in asked]
            rows.append(["degradation per look", *rates])
        head = [escape(title), *(escape(arm.title) for arm in found.arms)]
        tables.append(table(head, rows, f"findings.json: [{number}].arms[].queries[]"))
    return (
        "<h3>Queries, seconds</h3><p class='small'>From naming the table to the answer, each kind in a session of its "
        "own; cold: the table's files were put out of the page cache. JSON is asked through a window over all events "
        "that finds each order's newest version: what its readers have to write themselves. Of arms without compaction "
        "the last look is shown twice. Below a read-optimized time: how far its answer lagged behind at most, and how "
        f"many orders it showed as they were not any more, or not at all.</p>{''.join(tables)}"
        f"{''.join(_misread(arm) for arm in found.arms)}"
    )


def _beside(number: int, found: ScenarioFindings) -> str:
    rows = [
        (
            escape(arm.title),
            f"{escape(one.kind)}, {escape(ENGINES[one.engine])}",
            "–" if one.seconds is None else ranged(one.seconds.text(".2f")),
            f"{one.asked:,}",
            *(f'<span class="{"miss" if count else "ok"}">{count:,}</span>' for count in (one.torn, one.failed)),
            f'<div class="words">{escape(one.error)}</div>',
        )
        for arm in found.arms
        for one in arm.beside
    ]
    if not rows:
        short = "Nobody asked while batches were written: the run was over before the second look."
        return f'<p class="miss">{short}</p>' if found.scenario.has_readers else ""
    return "<h3>Asked while batches were written</h3>" + table(
        ["", "question", "s", "asked", "of no whole batch", "failed", "such as"],
        rows,
        f"findings.json: [{number}].arms[].beside[]. From the second look's batches on, one question after the other, "
        "from one thread. An answer has to be that of a number of whole batches that were visible meanwhile. CPU and "
        "seconds of batches have the readers' share in them, so this scenario has no bills.",
    )


def _misread(arm: ArmFindings) -> str:
    """What has no time, because the answer is wrong."""
    return "".join(
        f'<p class="miss">{escape(arm.title)}, {escape(one.kind)}, {escape(ENGINES[one.engine])}: a wrong answer, so '
        f"not timed. Right is {escape(one.right[:160])}, the answer {escape(one.given[:160])}.</p>"
        for one in arm.misread
    )


def _asked(query: QueryFindings | None, state: str) -> str:
    if query is None:
        return "–"
    spread = dict(zip(_STATES, (query.cold, query.before, query.after), strict=True))[state]
    lag = ""
    if query.stale is not None and query.stale.batches and state == _STATES[1]:
        lag = f'<span class="range miss">{query.stale.batches} batches behind</span>'
        lag += f'<span class="range miss">{query.stale.orders:.0%} of the orders</span>'
    return ranged(spread.text(".2f")) + lag


def _wrong(number: int, found: ScenarioFindings) -> str:
    if not found.wrong:
        return ""
    rows = [
        (
            escape(one.kind),
            f'<span class="{"miss" if one.is_wrong else "ok"}">{"wrong" if one.is_wrong else "right"}</span>',
            f'<div class="words">{escape(one.right[:160])}</div>',
            f'<div class="words">{escape(one.given[:160])}</div>',
        )
        for one in found.wrong
    ]
    return "<h3>What plain JSON answers to who takes each event for an order</h3>" + table(
        ["question", "", "right", "answer"],
        rows,
        f"findings.json: [{number}].wrong[]. Updates are counted again, and what was deleted is still there.",
    )


def _requests(number: int, found: ScenarioFindings) -> str:
    if not found.requests:
        return '<p class="small">Requests to S3 were not counted for all tables, so they cost nothing below.</p>'
    kinds = sorted({kind for one in found.requests for kind in one.writing})
    counted = found.requests[0].batches
    rows = []
    for one in found.requests:
        per = [one.writing.get(kind, 0) / one.batches for kind in kinds]
        total = sum(one.writing.values()) / one.records * 1e6
        asking = [sum(counts.values()) for counts in one.reading.values()]
        query = f"{min(asking):,}–{max(asking):,}" if asking else "–"
        rows.append([escape(ARMS[one.arm].title), *(f"{count:.1f}" for count in per), f"{total:,.0f}", query])
    return "<h3>Requests to S3</h3>" + table(
        ["per batch", *kinds, "all, per million events", "one query"],
        rows,
        f"results.json: requests[]; findings.json: [{number}].requests[]. Counted by the S3 server while "
        f"{counted} batches were written, the driver's log and table services included"
        f"{'' if counted >= DECADE else '; so few that no compaction is among them'}.",
    )


def _setup(results: Results) -> str:
    setup = results.setup
    facts = [*setup.versions.items(), *setup.machine.items()]
    rows = [(escape(name), escape(value)) for name, value in facts]
    documents = dict.fromkeys((trial.arm, trial.document) for trial in results.trials if trial.document)
    options = "".join(f"<h3>{escape(ARMS[arm].title)}</h3><pre>{escape(text)}</pre>" for arm, text in documents)
    conf = "\n".join(f"{name}={value}" for name, value in setup.spark_conf.items())
    return (
        "<h2>How it was run</h2>"
        + table(["", ""], rows, "results.json: setup")
        + f"<details><summary>Options of each table, and of Spark</summary>{options}"
        f"<h3>Spark</h3><pre>{escape(conf)}</pre></details>"
    )
