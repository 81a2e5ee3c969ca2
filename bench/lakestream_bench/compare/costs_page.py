"""The part of the report about money. What a reader changes is multiplied out again by a few lines of script."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from html import escape
from importlib.resources import files

import orjson

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.findings import ArmFindings, ScenarioFindings
from lakestream_bench.compare.money import (
    HOURS_PER_MONTH,
    STREAM_LINES,
    Load,
    Price,
    Prices,
    cost_lines,
    inputs_of,
    rivals,
)
from lakestream_pages.frame import key, table

_SOURCES = {
    "Kinesis": "var(--grey)",
    "cluster": "var(--line)",
    "writing: CPU": "var(--ours)",
    "writing: requests": "var(--red)",
    "storage": "var(--amber)",
    "queries: CPU": "var(--violet)",
    "queries: requests": "var(--green)",
}
_ASKED = {
    "events_per_second": "events per second",
    "event_bytes": "bytes per event",
    "new_keys": "share of events that make a row that stays",
    "retention_days": "days that a row is kept",
    "queries_per_day": "queries per day",
    "batch_seconds": "seconds between batches",
    "utilization": "share of the paid vCPUs that works",
    "shards": "shards, if provisioned; 0: on demand",
}

_URL = re.compile(r"https?://([^/]+)")

COSTS_STYLE = """
.costs .bar{display:grid;grid-template-columns:minmax(90px,200px) 1fr 90px;gap:8px;align-items:center;margin:4px 0}
.costs .bar div{display:flex;height:20px}.costs .bar i{display:block;height:100%}
.inputs{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:8px 16px;margin:10px 0}
.inputs label{display:block;font-size:13px;color:var(--soft)}
.inputs input{display:block;width:100%}.costs td input{width:9ch;text-align:right}
.costs input{box-sizing:border-box;font:inherit;color:var(--text);background:var(--back);
border:1px solid var(--line);border-radius:4px;padding:3px 6px}
@media(max-width:600px){.costs .bar{grid-template-columns:1fr 60px}.costs .bar span{grid-column:1/3}}
"""

SCRIPT = (files("lakestream_bench.compare") / "costs.js").read_text("utf-8")

START = f"""<script>{SCRIPT}
for (const section of document.querySelectorAll(".costs")) {{
  section.addEventListener("input", () => show(section));
  show(section);
}}
</script>"""
"""Behind all sections."""


def model(found: ScenarioFindings, prices: Prices) -> dict[str, object]:
    """What the script multiplies."""
    ours = _ours(found).measured
    return {
        "inputs": inputs_of(found.money.load, prices),
        "stream": [asdict(line) for line in STREAM_LINES],
        "cpu": {"event": ours.cpu_per_event, "batch": ours.cpu_per_batch},
        "arms": [{"name": arm.arm, "lines": [asdict(line) for line in cost_lines(arm.measured)]} for arm in found.arms],
    }


def costs(number: int, found: ScenarioFindings, prices: Prices) -> str:
    """The section, with what `START` multiplies."""
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
        f"{_stream(number, found)}{_others(found, prices)}{_prices(prices)}"
        f'<script type="application/json">{_json(model(found, prices))}</script></section>'
    )


def _json(value: object) -> str:
    # Inside of a script element, "</" would end it.
    return orjson.dumps(value).decode().replace("</", "<\\/")


def _inputs(load: Load) -> str:
    asked = "".join(
        f'<label>{_ASKED[one.name]}<input type="number" min="0" step="any" name="{one.name}" '
        f'value="{_number(getattr(load, one.name))}"></label>'
        for one in fields(load)
    )
    return (
        f'<div class="inputs">{asked}</div><p class="small">Change a number, and everything here is worked out again. '
        "CPU per batch, per event, per query and per row of the table are lines through what was measured, at tables "
        "far smaller than most: what is asked of a large table is extrapolated.</p>"
    )


def _number(value: float) -> str:
    """All its digits, or the page would come to other sums than the figures beside it."""
    return repr(int(value)) if value == int(value) else repr(value)


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


def _stream(number: int, found: ScenarioFindings) -> str:
    stream = found.money.stream
    return (
        f"<p>The stream alone: <b data-stream='on_demand'>${stream.on_demand:,.2f}</b> a month on demand, "
        f"<b data-stream='provisioned'>${stream.provisioned:,.2f}</b> provisioned with the fewest shards that take the "
        f"load, <b data-stream='least_shards'>{stream.least_shards:,}</b>. Provisioned costs less with up to "
        f"<b data-stream='even_shards'>{stream.even_text}</b> shards, which is the room for peaks. "
        f'<span class="small">findings.json: [{number}].money.stream</span></p>'
    )


def _ours(found: ScenarioFindings) -> ArmFindings:
    """Whose CPU the rivals are taken to need."""
    return next((arm for arm in found.arms if arm.arm == "mor"), found.arms[0])


def _others(found: ScenarioFindings, prices: Prices) -> str:
    rows = (
        (
            escape(rival.name),
            f"<span data-rival>${rival.dollars:,.0f}</span>",
            f'<div class="words">{escape(rival.says)}</div>',
        )
        for rival in rivals(found.money.load, prices, _ours(found).measured)
    )
    return table(
        ("", "a month", ""),
        rows,
        "List prices for taking the same stream to S3; Kinesis, storage and queries come on top. They have a least "
        "size, and the bills above none, being of CPU that works: the pods of one writer ask for three vCPUs unless "
        f"told otherwise, <span data-pods>${3 * HOURS_PER_MONTH * prices.of('vcpu_hour'):,.0f}</span> a month however "
        "little comes.",
    )


def _prices(prices: Prices) -> str:
    rows = "".join(
        f"<tr><td>{escape(price.unit)}</td><td>{_price(price)}</td>"
        f"<td>{escape(price.as_of or 'no date given')}</td>"
        f"<td>{_source(price.source)}</td></tr>"
        for price in prices.prices
    )
    return (
        f"<details><summary>Prices, {escape(prices.region)}, collected {escape(prices.collected)}</summary>"
        '<div class="wide"><table><tr><th>what</th><th>dollars</th><th>as of</th><th>source</th></tr>'
        f"{rows}</table></div></details>"
    )


def _price(price: Price) -> str:
    return (
        f'<input type="number" min="0" step="any" name="{escape(price.name)}" value="{_number(price.dollars)}" '
        f'aria-label="{escape(price.unit)}">'
    )


def _source(source: str | None) -> str:
    if source is None:
        return '<span class="miss">an assumption</span>'
    url = _URL.match(source)
    # Of a price file of somebody's own it may be the name of a contract.
    return escape(source) if url is None else f'<a href="{escape(source, quote=True)}">{escape(url[1])}</a>'
