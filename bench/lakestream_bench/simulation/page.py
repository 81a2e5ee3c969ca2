"""The report: one HTML file without anything from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lakestream_bench.simulation.costs import BatchCosts, StageCost
from lakestream_bench.simulation.policies import LakeStream
from lakestream_bench.simulation.run import BOUND, Result
from lakestream_bench.simulation.streams import Scenario
from lakestream_bench.simulation.summary import COST_RATIO, LATE_SECONDS, Case, Runs, totals
from lakestream_bench.simulation.world import START_SECONDS
from lakestream_pages.frame import document, key, ranged
from lakestream_pages.plots import Plot, Series, changes, thin

COLORS = {
    "LakeStream": "var(--ours)",
    "Flink operator": "var(--red)",
    "managed Flink": "var(--violet)",
    "KEDA": "var(--amber)",
    BOUND: "var(--grey)",
}
_POINTS = 360
_STYLE = """
.case{display:grid;grid-template-columns:minmax(0,1fr) 380px;gap:20px;align-items:start}
.case table{width:100%;margin:0}.case td,.case th{padding:2px 5px}
@media(max-width:900px){.case{grid-template-columns:minmax(0,1fr)}}
@media(max-width:600px){table,table.small{font-size:11px;width:100%}
th,td,.case th,.case td{padding:3px 2px;white-space:normal}.plots svg{width:640px}}
"""


def page(cases: Sequence[Case], scenarios: dict[tuple[str, int], Scenario], costs: BatchCosts) -> str:
    """The whole document."""
    sections = (_section(case, scenarios[case.scenario, case.shards]) for case in cases)
    body = "".join([_introduction(cases, costs), _key(cases), _totals(cases), _overview(cases), *sections])
    return document("LakeStream: scaling simulated", body, _STYLE)


def _introduction(cases: Sequence[Case], costs: BatchCosts) -> str:
    stages = "; ".join(
        f"{name} {stage.fixed:.2f} s + {stage.per_record * 1e6:.1f} µs per record and core ({_quality(stage)})"
        for name, stage in (("preparing", costs.prepare), ("finishing", costs.finish))
    )
    seeds = len({result.seed for case in cases for result in case.results})
    shown = "Figures are medians, with the range over the seeds below them; drawn is the first." if seeds > 1 else ""
    return (
        "<p>Each policy scales the same driver through the same load. <b>Late</b> are the seconds in which the oldest "
        "record not yet in the table was older than the lag goal. <b>Cost</b> is executor-seconds through those of a "
        "lower bound: work that flows like water, executors in fractions, and everything known in advance. No policy "
        "can reach it. An executor is paid for from its request to its end. Where even the bound is late, the goal "
        f"cannot be kept, and the case is left out of the sums. {seeds} seed{'s' if seeds != 1 else ''}. {shown}</p>"
        f"<p>Batches cost what was measured for the writer <code>{escape(costs.writer)}</code> "
        f"({escape(costs.source)}): {stages}. That this holds on more cores than were measured is assumed. "
        f"Of a record's cost {costs.byte_share:.0%} is taken to go by its bytes. Records of {costs.record_bytes:.0f} "
        "bytes come in aggregates of the KPL, so that a full shard has 1 MiB of them per second, and not 1,000. "
        "Flink's operator and managed Flink "
        f"restart the driver to scale, which takes {START_SECONDS:.0f} s here; KEDA is taken to scale in place.</p>"
    )


def _quality(stage: StageCost) -> str:
    if stage.r2 is None:
        return f"a line through two points; single batches are taken to lie {stage.residual:.0%} around it"
    return f"r² {stage.r2:.3f}, residuals {stage.residual:.0%}"


def _key(cases: Sequence[Case]) -> str:
    return key({name: COLORS[name] for case in cases for name in case.policies})


def _totals(cases: Sequence[Case]) -> str:
    rows = "".join(
        f"<tr{_mark(line.policy)}><td>{escape(line.policy)}</td><td>{line.late_seconds:,.0f}</td>"
        f"<td>{'–' if line.cost is None else f'{line.cost:.2f}'}</td><td>{line.actions_per_hour:.2f}</td></tr>"
        for line in totals(cases)
    )
    kept = sum(case.can_be_kept for case in cases)
    return (
        f"<h2>Over the {kept} of {len(cases)} cases in which the goal can be kept</h2>"
        '<div class="wide"><table><tr><th>policy</th><th>late, s</th><th>cost, mean</th>'
        f"<th>actions/h</th></tr>{rows}</table></div><p class='small'>Actions are those of all cases.</p>"
    )


def _mark(policy: str) -> str:
    return ' class="ours"' if policy == LakeStream.name else ""


def _overview(cases: Sequence[Case]) -> str:
    names = list(dict.fromkeys(name for case in cases for name in case.policies if name != BOUND))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for case in cases:
        cells = "".join(f"<td>{_cell(case.of(name))}</td>" for name in names)
        link = f'<a href="#{_anchor(case)}">{escape(case.scenario)}</a>{"" if case.can_be_kept else " *"}'
        rows.append(f"<tr><td>{link}</td><td>{case.shards:,}</td>{cells}</tr>")
    return (
        '<p class="small">Late seconds, and cost in brackets, by medians. *: nobody can keep the goal.</p>'
        f'<div class="wide"><table class="small"><tr><th>scenario</th><th>shards</th>{head}</tr>'
        f"{''.join(rows)}</table></div>"
    )


def _cell(runs: Runs | None) -> str:
    if runs is None:
        return "–"
    return f"{runs.late.median:,.0f}" + ("" if runs.cost is None else f" ({runs.cost.median:.2f})")


def _anchor(case: Case) -> str:
    return f"{case.scenario.replace(' ', '-')}-{case.shards}"


def _section(case: Case, scenario: Scenario) -> str:
    verdicts = case.verdicts()
    says = "".join(f'<p class="small miss">{escape(text)}</p>' for text in verdicts)
    kept = f"At most {LATE_SECONDS:.0f} s late, at most {COST_RATIO} × the bound's cost, and no rival does better."
    says = says or f'<p class="small ok">{kept if case.can_be_kept else "No rival does better."}</p>'
    return (
        f'<h2 id="{_anchor(case)}">{escape(case.scenario)}, {case.shards:,} shards</h2>'
        f"<p>{escape(scenario.story)}; executors of {scenario.cores} core{'s' if scenario.cores != 1 else ''}</p>"
        f'<div class="case"><div class="wide plots">{"".join(plot.svg() for plot in _plots(case, scenario))}</div>'
        f"<div>{_table(case)}{says}{_said(case)}</div></div>"
    )


def _table(case: Case) -> str:
    rows = []
    for name in case.policies:
        runs = case.of(name)
        assert runs is not None
        figures = [(runs.late.text(",.0f"))]
        figures.append("–" if runs.cost is None else runs.cost.text(".2f"))
        figures.append("" if name == BOUND else runs.actions.text(".1f"))
        cells = "".join(f"<td>{ranged(text)}</td>" for text in figures)
        rows.append(f"<tr{_mark(name)}><td>{escape(name)}</td>{cells}</tr>")
    head = "<tr><th>policy</th><th>late, s</th><th>cost</th><th>actions/h</th></tr>"
    return f'<div class="wide"><table class="small">{head}{"".join(rows)}</table></div>'


def _said(case: Case) -> str:
    result = _first(case, LakeStream.name)
    if result is None or not result.explanations:
        return ""
    lines = "".join(f"<li>{at / 3600:.2f} h: {escape(text)}</li>" for at, text in result.explanations)
    count = len(result.explanations)
    return f'<details class="small"><summary>What it said ({count})</summary><ul>{lines}</ul></details>'


def _first(case: Case, policy: str) -> Result | None:
    """Of several seeds, the one that is drawn."""
    return next((result for result in case.results if result.policy == policy), None)


def _plots(case: Case, scenario: Scenario) -> list[Plot]:
    hours = scenario.seconds / 3600
    load = [(second / 3600, float(scenario.rate[second])) for second in range(0, scenario.seconds, 10)]
    order = sorted(case.policies, key=lambda name: (name == LakeStream.name, name != BOUND))
    results = [result for name in order if (result := _first(case, name)) is not None]
    lags = [_line(result, [(t / 3600, lag) for t, lag, _, _ in result.trace]) for result in results]
    sizes = [
        _line(result, changes([(t / 3600, float(placed)) for t, _, placed, _ in result.trace]), step=True)
        for result in results
    ]
    goal = scenario.max_lag
    return [
        Plot("Load", "records/s", [Series("load", "var(--soft)", thin(load, _POINTS), width=1)], hours, height=110),
        Plot(f"Age of the oldest record not in the table (dashed: the goal, {goal:.0f} s)", "s", lags, hours, goal=goal,
             height=190, root=True),
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
        "" if result.policy != BOUND else "2 2",
    )
