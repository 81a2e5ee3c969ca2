"""The report: one HTML file without anything from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lakestream_bench.simulation.costs import BatchCosts, StageCost
from lakestream_bench.simulation.plots import STYLE, Plot, Series, changes, thin
from lakestream_bench.simulation.policies import LakeStream, Oracle
from lakestream_bench.simulation.run import Result
from lakestream_bench.simulation.scenarios import Scenario
from lakestream_bench.simulation.summary import Case, totals
from lakestream_bench.simulation.world import START_SECONDS

COLORS = {
    "LakeStream": "#0b6e99",
    "Flink operator": "#d1495b",
    "managed Flink": "#8a5fbf",
    "KEDA": "#c98b00",
    "oracle": "#8b949e",
}
_POINTS = 360
_STYLE = """
:root{font:15px/1.5 system-ui,sans-serif;color:#1f2328}body{max-width:1180px;margin:0 auto;padding:24px}
h1{font-size:26px;margin:0}h2{font-size:19px;margin:36px 0 2px;border-top:1px solid #d0d7de;padding-top:20px}
p{margin:6px 0;max-width:80ch}table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}
th,td{padding:3px 12px;text-align:right;border-bottom:1px solid #e4e8ec}th:first-child,td:first-child{text-align:left}
th{font-weight:600;background:#f6f8fa}tr.ours td{font-weight:600;background:#eef6fa}svg{width:100%;display:block}
.case{display:grid;grid-template-columns:minmax(0,1fr) 330px;gap:20px;align-items:start}
.miss{color:#a40e26}.ok{color:#1a7f37}
.key span{display:inline-block;margin-right:16px}.key i{display:inline-block;width:20px;height:3px;margin-right:6px;
vertical-align:middle}.small{font-size:13px}.case table{width:100%;margin:0}.case td,.case th{padding:2px 6px}
@media(max-width:900px){.case{grid-template-columns:1fr}}
"""


def page(cases: Sequence[Case], scenarios: dict[tuple[str, int], Scenario], costs: BatchCosts) -> str:
    """The whole document."""
    title = "LakeStream: scaling simulated"
    return "".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}{STYLE}</style></head><body>',
            f"<h1>{title}</h1>{_introduction(costs)}{_key(cases)}{_totals(cases)}{_overview(cases)}",
            *(_section(case, scenarios[case.scenario, case.shards]) for case in cases),
            "</body></html>\n",
        ]
    )


def _introduction(costs: BatchCosts) -> str:
    stages = "; ".join(
        f"{name} {stage.fixed:.2f} s + {stage.per_record * 1e6:.1f} µs per record and core ({_quality(stage)})"
        for name, stage in (("preparing", costs.prepare), ("finishing", costs.finish))
    )
    return (
        "<p>Each policy scales the same driver through the same load. <b>Late</b> are the seconds in which the oldest "
        "record not yet in the table was older than the lag goal. <b>Cost</b> is executor-seconds through those of an "
        "oracle that knows the load, tries all numbers of executors for each two minutes to come, and takes the "
        "smallest that keeps the goal. An executor is paid for from its request to its end.</p>"
        f"<p>Batches cost what was measured for the writer <code>{escape(costs.writer)}</code> "
        f"({escape(costs.source)}): {stages}. Flink's operator and managed Flink "
        f"restart the driver to scale, which takes {START_SECONDS:.0f} s here; KEDA is taken to scale in place.</p>"
    )


def _quality(stage: StageCost) -> str:
    if stage.r2 is None:
        return f"a line through two points; single batches are taken to lie {stage.residual:.0%} around it"
    return f"r² {stage.r2:.3f}, residuals {stage.residual:.0%}"


def _key(cases: Sequence[Case]) -> str:
    names = dict.fromkeys(result.policy for case in cases for result in case.results)
    spans = "".join(f'<span><i style="background:{COLORS[name]}"></i>{escape(name)}</span>' for name in names)
    return f'<p class="key">{spans}</p>'


def _totals(cases: Sequence[Case]) -> str:
    rows = "".join(
        f"<tr{_mark(line.policy)}><td>{escape(line.policy)}</td><td>{line.late_seconds:,.0f}</td>"
        f"<td>{'–' if line.cost is None else f'{line.cost:.2f}'}</td><td>{line.actions_per_hour:.2f}</td></tr>"
        for line in totals(cases)
    )
    return (
        f"<h2>Over all {len(cases)} cases</h2><table><tr><th>policy</th><th>late, s</th><th>cost, mean</th>"
        f"<th>actions/h</th></tr>{rows}</table>"
    )


def _mark(policy: str) -> str:
    return ' class="ours"' if policy == LakeStream.name else ""


def _overview(cases: Sequence[Case]) -> str:
    names = list(dict.fromkeys(result.policy for case in cases for result in case.results))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for case in cases:
        cells = "".join(f"<td>{_cell(case, case.of(name))}</td>" for name in names)
        link = f'<a href="#{_anchor(case)}">{escape(case.scenario)}</a>'
        rows.append(f"<tr><td>{link}</td><td>{case.shards:,}</td>{cells}</tr>")
    return (
        '<p class="small">Late seconds, and cost in brackets:</p>'
        f"<table class='small'><tr><th>scenario</th><th>shards</th>{head}</tr>{''.join(rows)}</table>"
    )


def _cell(case: Case, result: Result | None) -> str:
    if result is None:
        return "–"
    cost = case.cost(result)
    return f"{result.late_seconds:,.0f}" + ("" if cost is None else f" ({cost:.2f})")


def _anchor(case: Case) -> str:
    return f"{case.scenario.replace(' ', '-')}-{case.shards}"


def _section(case: Case, scenario: Scenario) -> str:
    verdicts = case.verdicts()
    says = "".join(f'<p class="small miss">{escape(text)}</p>' for text in verdicts)
    says = says or '<p class="small ok">All goals are met, and no rival does better.</p>'
    return (
        f'<h2 id="{_anchor(case)}">{escape(case.scenario)}, {case.shards:,} shards</h2><p>{escape(scenario.story)}</p>'
        f'<div class="case"><div>{"".join(plot.svg() for plot in _plots(case, scenario))}</div>'
        f"<div>{_table(case)}{says}{_said(case)}</div></div>"
    )


def _table(case: Case) -> str:
    rows = "".join(
        f"<tr{_mark(result.policy)}><td>{escape(result.policy)}</td><td>{result.late_seconds:,.0f}</td>"
        f"<td>{'–' if (cost := case.cost(result)) is None else f'{cost:.2f}'}</td>"
        f"<td>{result.actions_per_hour:.1f}</td></tr>"
        for result in case.results
    )
    return f"<table class='small'><tr><th>policy</th><th>late, s</th><th>cost</th><th>actions/h</th></tr>{rows}</table>"


def _said(case: Case) -> str:
    ours = case.ours
    if ours is None or not ours.explanations:
        return ""
    lines = "".join(f"<li>{at / 3600:.2f} h: {escape(text)}</li>" for at, text in ours.explanations[:12])
    more = len(ours.explanations) - 12
    rest = f"<li>… and {more} more</li>" if more > 0 else ""
    return f'<details class="small"><summary>What it said</summary><ul>{lines}{rest}</ul></details>'


def _plots(case: Case, scenario: Scenario) -> list[Plot]:
    hours = scenario.seconds / 3600
    load = [(second / 3600, float(scenario.rate[second])) for second in range(0, scenario.seconds, 10)]
    goal = scenario.spec.max_lag.total_seconds()
    order = sorted(case.results, key=lambda result: (result.policy == LakeStream.name, result.policy != Oracle.name))
    lags = [_line(result, [(t / 3600, lag) for t, lag, _, _ in result.trace]) for result in order]
    sizes = [
        _line(result, changes([(t / 3600, float(placed)) for t, _, placed, _ in result.trace]), step=True)
        for result in order
    ]
    worst = max(lag for result in case.results for _, lag, _, _ in result.trace)
    return [
        Plot("Load", "records/s", [Series("load", "#57606a", thin(load, _POINTS), width=1)], hours, height=110),
        Plot("Lag (age of the oldest record not in the table; the dashed line is the goal)", "s", lags, hours,
             goal=goal, top=min(worst, 8 * goal)),
        Plot("Executors", "executors", sizes, hours, height=190, whole=True),
    ]  # fmt: skip


def _line(result: Result, points: list[tuple[float, float]], *, step: bool = False) -> Series:
    ours = result.policy == LakeStream.name
    return Series(
        result.policy,
        COLORS[result.policy],
        thin(points, 4 * _POINTS) if step else thin(points, _POINTS),
        step,
        2.2 if ours else 1.1,
        "" if result.policy != Oracle.name else "2 2",
    )
