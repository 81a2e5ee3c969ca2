"""The part of the report about money. What a reader changes is multiplied out again by a few lines of script."""

from __future__ import annotations

from dataclasses import asdict, fields
from html import escape

import orjson

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.findings import ScenarioFindings
from lakestream_bench.compare.money import Load, Prices, cost_lines, inputs_of, rivals
from lakestream_pages.frame import key

_SOURCES = {
    "Kinesis": "var(--grey)",
    "cluster": "var(--soft)",
    "writing: CPU": "var(--ours)",
    "writing: requests": "var(--red)",
    "storage": "var(--amber)",
    "queries: CPU": "var(--violet)",
    "queries: requests": "var(--green)",
}
_ASKED = {
    "events_per_second": "events per second",
    "event_bytes": "bytes per event (up to 1,024)",
    "new_keys": "share of events that make a row that stays",
    "retention_days": "days that a row is kept",
    "queries_per_day": "queries per day",
    "batch_seconds": "seconds between batches",
    "utilization": "share of the paid vCPUs that works",
}

COSTS_STYLE = """
.costs .bar{display:grid;grid-template-columns:minmax(90px,200px) 1fr 90px;gap:8px;align-items:center;margin:4px 0}
.costs .bar div{display:flex;height:20px}.costs .bar i{display:block;height:100%}
.inputs{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:8px 16px;margin:10px 0}
.inputs label{display:block;font-size:13px;color:var(--soft)}
.inputs input{display:block;width:100%;box-sizing:border-box;font:inherit;color:var(--text);background:var(--back);
border:1px solid var(--line);border-radius:4px;padding:3px 6px}
"""

SCRIPT = """
function bill(arm, inputs) {
  const by = {};
  let keeping = 0, asking = 0;
  for (const line of arm.lines) {
    const dollars = line.factors.reduce(
      (product, name) => name.startsWith("1/") ? product / inputs[name.slice(2)] : product * inputs[name],
      line.coefficient);
    by[line.source] = (by[line.source] || 0) + dollars;
    if (line.factors.includes("queries_per_day")) asking += dollars; else keeping += dollars;
  }
  return {by, keeping, asking, total: keeping + asking};
}
function breakEven(challenger, holder, inputs) {
  const a_query = {...inputs, queries_per_day: 1}, next = bill(challenger, a_query), old = bill(holder, a_query);
  const dearer = next.keeping - old.keeping, saved = old.asking - next.asking;
  if (saved === 0 || (dearer <= 0) === (saved > 0))
    return dearer < 0 || (dearer === 0 && saved > 0) ? "always" : "never";
  const count = Math.round(dearer / saved).toLocaleString("en-US");
  return `${saved > 0 ? "above" : "below"} ${count} queries a day`;
}
function money(dollars) {
  const digits = dollars < 10 ? 2 : 0;
  return "$" + dollars.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}
function show(section) {
  const model = JSON.parse(section.querySelector("script").textContent), inputs = {...model.inputs};
  for (const field of section.querySelectorAll("input")) inputs[field.name] = Number(field.value);
  const bills = model.arms.map(arm => bill(arm, inputs)), most = Math.max(...bills.map(one => one.total));
  const terabytes = inputs.events_per_second * inputs.event_bytes * 730 * 3600 / 1e12;
  model.arms.forEach((arm, number) => {
    const one = bills[number], find = name => section.querySelector(`[data-arm="${arm.name}"][data-figure="${name}"]`);
    for (const part of section.querySelectorAll(`.bar[data-arm="${arm.name}"] i`))
      part.style.width = `${100 * (one.by[part.title] || 0) / most}%`;
    find("total").textContent = money(one.total);
    find("keeping").textContent = money(one.keeping);
    find("asking").textContent = money(one.asking);
    find("terabyte").textContent = money(one.keeping / terabytes);
    find("queries").textContent = money(bill(arm, {...inputs, queries_per_day: 1}).asking * 24 / 730 * 1000);
  });
  for (const cell of section.querySelectorAll("[data-challenger]")) {
    const named = name => model.arms.find(arm => arm.name === name);
    cell.textContent = breakEven(named(cell.dataset.challenger), named(cell.dataset.holder), inputs);
  }
}
"""
"""The sums of `money`, over the same cost lines. Tests run both."""

_START = """
for (const section of document.querySelectorAll(".costs")) {
  section.addEventListener("input", () => show(section));
  show(section);
}
"""


def model(found: ScenarioFindings, prices: Prices) -> dict[str, object]:
    """What the script multiplies."""
    return {
        "inputs": inputs_of(found.money.load, prices),
        "arms": [{"name": arm.arm, "lines": [asdict(line) for line in cost_lines(arm.measured)]} for arm in found.arms],
    }


def costs(number: int, found: ScenarioFindings, prices: Prices) -> str:
    """The section, with its script."""
    bars = "".join(
        f'<div class="bar" data-arm="{arm.arm}"><span>{escape(arm.title)}</span><div>'
        + "".join(f'<i title="{source}" style="background:{color}"></i>' for source, color in _SOURCES.items())
        + f'</div><b data-arm="{arm.arm}" data-figure="total"></b></div>'
        for arm in found.arms
    )
    evens = "".join(
        f"<tr><td>{escape(ARMS[one.challenger].title)} costs less than {escape(ARMS[one.holder].title)}</td>"
        f'<td data-challenger="{one.challenger}" data-holder="{one.holder}">{one}</td></tr>'
        for one in found.money.break_evens
    )
    return (
        f'<section class="costs"><h3>A month, in dollars</h3>{key(_SOURCES)}{bars}{_inputs(found.money.load)}'
        f"{_bills(number, found)}"
        f'<div class="wide"><table><caption>findings.json: [{number}].money.break_evens</caption>{evens}</table></div>'
        f"{_others(found, prices)}{_prices(prices)}"
        f'<script type="application/json">{_json(model(found, prices))}</script></section>'
        f"{'' if number else f'<script>{SCRIPT}</script>'}<script>{_START}</script>"
    )


def _json(value: object) -> str:
    # Inside of a script element, "</" would end it.
    return orjson.dumps(value).decode().replace("</", "<\\/")


def _inputs(load: Load) -> str:
    asked = "".join(
        f'<label>{_ASKED[one.name]}<input type="number" min="0" step="any" name="{one.name}" '
        f'value="{getattr(load, one.name):g}"></label>'
        for one in fields(load)
    )
    return (
        f'<div class="inputs">{asked}</div><p class="small">Change a number, and everything here is worked out again. '
        "CPU per batch, per event, per query and per row of the table are lines through what was measured, at tables "
        "far smaller than most: what is asked of a large table is extrapolated.</p>"
    )


def _bills(number: int, found: ScenarioFindings) -> str:
    rows = "".join(
        f"<tr><td>{escape(ARMS[bill.arm].title)}</td>"
        + "".join(
            f'<td data-arm="{bill.arm}" data-figure="{name}">${value:,.2f}</td>'
            for name, value in (
                ("keeping", bill.keeping),
                ("asking", bill.asking),
                ("terabyte", bill.per_terabyte),
                ("queries", bill.per_thousand_queries),
            )
        )
        + "</tr>"
        for bill in found.money.bills
    )
    return (
        f'<div class="wide"><table><caption>findings.json: [{number}].money.bills</caption><tr><th></th>'
        "<th>without queries, a month</th><th>queries, a month</th><th>per TB taken in</th>"
        f"<th>per 1,000 queries</th></tr>{rows}</table></div>"
    )


def _others(found: ScenarioFindings, prices: Prices) -> str:
    ours = next((arm for arm in found.arms if arm.arm == "mor"), found.arms[0])
    rows = "".join(
        f"<tr><td>{escape(rival.name)}</td><td>${rival.dollars:,.0f}</td><td>{escape(rival.says)}</td></tr>"
        for rival in rivals(found.money.load, prices, ours.measured)
    )
    return (
        '<div class="wide"><table><caption>List prices for taking the same stream to S3, at the load that the report '
        f"was made for; Kinesis, storage and queries come on top.</caption>{rows}</table></div>"
    )


def _prices(prices: Prices) -> str:
    rows = "".join(
        f"<tr><td>{escape(price.unit)}</td><td>${price.dollars:g}</td>"
        f"<td>{escape(price.as_of or 'no date given')}</td>"
        f"<td>{_source(price.source)}</td></tr>"
        for price in prices.prices
    )
    return (
        f"<details><summary>Prices, {escape(prices.region)}, collected {escape(prices.collected)}</summary>"
        '<div class="wide"><table><tr><th>what</th><th>dollars</th><th>as of</th><th>source</th></tr>'
        f"{rows}</table></div></details>"
    )


def _source(source: str | None) -> str:
    if source is None:
        return '<span class="miss">an assumption</span>'
    host = source.split("/")[2]
    return f'<a href="{escape(source, quote=True)}">{escape(host)}</a>'
