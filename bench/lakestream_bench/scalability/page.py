"""The part of the comparison's page about scalability."""

from __future__ import annotations

from html import escape

from lakestream_bench.scalability.figures import Scalability, Step, demand_of
from lakestream_pages.frame import key, table
from lakestream_pages.plots import Dot, LogPlot, Series

_COLORS = {"measured here": "var(--ours)", "modelled": "var(--violet)"}
_MEASURED, _MODELLED = _COLORS.values()


def scalability(found: Scalability) -> str:
    """The section. Captions name the place of their numbers in scalability.json."""
    return (
        '<h2 id="scalability">Scalability: demand and capacity</h2>'
        "<p><b>Capacity</b> is the most load at which so many task slots keep the goal, <b>demand</b> the fewest slots "
        f"that keep it at a load. The goal: visible {found.goal_seconds:g} s after arrival (99 of 100 records of each "
        "batch), and no growing lag. Up to the dashed line it was measured: loads held for "
        f"{found.step_seconds:g} s each, the local Kinesis and the producer on the same {found.cores} cores as Spark. "
        "<b>What is beyond is the simulator's model</b>, and nobody has measured it: by what the two differ up to the "
        "line they may differ everywhere.</p>"
        f"{key(_COLORS)}<div class='pair'>{_demand(found).svg()}{_capacity(found).svg()}</div>{_table(found)}"
        f'<p class="small">scalability.json: measured[], modelled_demand[], modelled_capacity[]. Writer '
        f"<code>{escape(found.writer)}</code>, a batch every {found.interval_seconds:g} s, "
        f"{escape(found.measured_at)}; load average before: {found.load_average:.1f}. The model's batches cost what "
        f"was measured in {escape(found.model)}. A slot is a core of an executor; in the model, loads are full shards "
        "of 1,000 records per second, and neither what S3 throttles nor a table with more file groups counts."
        f"{'' if found.modelled_demand else ' By it no number of slots keeps the goal at any of them.'}</p>"
    )


def _demand(found: Scalability) -> LogPlot:
    modelled = [(one.records_per_second, float(one.slots)) for one in found.modelled_demand]
    kept = sorted({one.capacity for one in found.measured if one.capacity})
    dots = [(load, float(slots)) for load in kept if (slots := demand_of(found.measured, load)) is not None]
    return LogPlot(
        "Demand: the fewest slots that keep the goal",
        "records/s",
        "slots",
        [Series("modelled", _MODELLED, modelled, width=2, dash="6 3")],
        [Dot(f"{x:,.0f} records/s, {y:.0f} slots: measured", _MEASURED, x, y) for x, y in dots],
        _marks(found.measured_to),
    )


def _capacity(found: Scalability) -> LogPlot:
    # The inverse of the demand: the highest of the loads that so many slots keep.
    highest = {float(one.slots): one.records_per_second for one in found.modelled_demand}
    # One that is none has no place on an axis of logarithms; the table has it.
    highest |= {float(one.slots): one.records_per_second for one in found.modelled_capacity if one.records_per_second}
    modelled = sorted(highest.items())
    most = max((one.slots for one in found.measured if one.capacity), default=0)
    return LogPlot(
        "Capacity: the most load at which slots keep the goal",
        "slots",
        "records/s",
        [Series("modelled", _MODELLED, modelled, width=2, dash="6 3")],
        [
            Dot(f"{one.slots} slots, {one.capacity:,.0f} records/s: measured", _MEASURED, one.slots, one.capacity)
            for one in found.measured
            if one.capacity
        ],
        _marks(most),
    )


def _marks(place: float) -> tuple[tuple[float, str], ...]:
    return ((place, "modelled from here on"),) if place else ()


def _table(found: Scalability) -> str:
    modelled = {one.slots: one.records_per_second for one in found.modelled_capacity}
    rows = [
        (
            f"{one.slots}",
            one.told,
            f"{modelled[one.slots]:,.0f}" if one.slots in modelled else "–",
            ", ".join(_tried(step) for step in sorted(one.steps, key=lambda step: step.records_per_second)),
        )
        for one in found.measured
    ]
    return table(
        ("slots", "capacity, measured", "modelled", "loads tried, records/s"),
        rows,
        "scalability.json: measured[].steps[]",
    )


def _tried(step: Step) -> str:
    mark = '<span class="ok">kept</span>' if step.kept else '<span class="miss">missed</span>'
    return f"{step.records_per_second:,.0f} {mark if step.was_made else 'could not be sent'}"
