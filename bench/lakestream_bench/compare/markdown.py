"""The findings as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.findings import QueryFindings, ScenarioFindings
from lakestream_bench.compare.method import ENGINES, NATIVE, SPARK
from lakestream_bench.compare.queries import Kind
from lakestream_bench.compare.results import Results
from lakestream_bench.compare.rivals_page import NAMES
from lakestream_bench.rivals import Rivalry
from lakestream_bench.scalability.figures import Scalability


def markdown(
    results: Results,
    found: Sequence[ScenarioFindings],
    scalability: Scalability | None = None,
    rivalry: Rivalry | None = None,
) -> str:
    """Tables of the most important figures, of what `page` tells."""
    machine = results.setup.machine
    parts = [
        f"# Comparison of {results.measured_at}\n\n{machine.get('processor', '')}, {machine.get('cores', '?')} cores.\n"
    ]
    parts += [_scenario(one) for one in found]
    parts += [] if scalability is None else [_scalability(scalability)]
    parts += [] if rivalry is None else [_rivals(rivalry)]
    return "\n".join(parts)


def _scenario(found: ScenarioFindings) -> str:
    lines = [f"## {found.scenario.name}: {found.scenario.story}\n"]
    lines += [f"**{failure}**\n" for failure in found.failures]
    if not found.arms:
        return "\n".join(lines)
    titles = [arm.title for arm in found.arms]
    rows = [
        ("events/s, backlog", [arm.rows_per_second.text(",.0f") for arm in found.arms]),
        ("batch, s", [arm.batch_seconds.text(".2f") for arm in found.arms]),
        ("… by quarter of the batches", [arm.batch_seconds_by_quarter.text(".1f") for arm in found.arms]),
        *(
            (
                f"freshness p50 / p99, s, a batch every {ages[0].interval:g} s",
                [f"{one.p50:.1f} / {one.p99:.1f}" for one in ages],
            )
            for ages in zip(*(arm.freshness for arm in found.arms), strict=True)
        ),
        ("CPU-s per million events", [arm.cpu_per_million.text(",.0f") for arm in found.arms]),
        ("… by quarter of the batches", [arm.cpu_per_million_by_quarter.text(",.0f") for arm in found.arms]),
        ("write amplification", [arm.write_amplification.text(".2f") for arm in found.arms]),
        ("space amplification", [arm.space_amplification.text(".1f") for arm in found.arms]),
        ("files at the end", [arm.files.text(",.0f") for arm in found.arms]),
    ]
    for kind in Kind:
        for engine in (SPARK, NATIVE):
            asked = [arm.query(kind, engine) for arm in found.arms]
            cells = ["–" if one is None else _around_compaction(one) for one in asked]
            rows.append((f"{kind}, {engine}, s (before → after compaction)", cells))
    if not found.scenario.has_readers:
        bills = {bill.arm: bill for bill in found.money.bills}
        rows.append(("$ per TB taken in", [f"{bills[arm.arm].per_terabyte:,.2f}" for arm in found.arms]))
        rows.append(("$ per 1,000 queries", [f"{bills[arm.arm].per_thousand_queries:,.2f}" for arm in found.arms]))
    lines += [*_table(["", *titles], [[name, *cells] for name, cells in rows]), ""]
    lines += [] if found.scenario.has_readers else _money(found)
    lines += [
        f"- {arm.title}, {one.kind}, {ENGINES[one.engine]}, while batches were written: of {one.asked:,} answers "
        f"{one.torn:,} of no whole batch, {one.failed:,} failed; {one.seconds.text('.2f') if one.seconds else '–'} s."
        for arm in found.arms
        for one in arm.beside
    ]
    lines += [
        f"- {arm.title}, {one.kind}, {ENGINES[one.engine]}: a wrong answer, so not timed. Right is {one.right}, the "
        f"answer {one.given}."
        for arm in found.arms
        for one in arm.misread
    ]
    wrong = [one.kind for one in found.wrong if one.is_wrong]
    if wrong:
        lines.append(f"- Taken as orders, the events of plain JSON answer wrongly: {', '.join(wrong)}.")
    return "\n".join(lines) + "\n"


def _money(found: ScenarioFindings) -> list[str]:
    load, stream = found.money.load, found.money.stream
    uncounted = "" if found.requests else " Requests to S3 were not counted for all tables, and cost nothing here."
    return [
        f"- Dollars are of {load.events_per_second:,.0f} events/s of {load.event_bytes:,.0f} bytes, "
        f"{load.new_keys:.0%} of which make a row that stays.{uncounted}",
        *(
            f"- {ARMS[one.challenger].title} costs less than {ARMS[one.holder].title}: {one}."
            for one in found.money.break_evens
        ),
        f"- The stream costs ${stream.on_demand:,.2f} a month on demand, ${stream.provisioned:,.2f} provisioned with "
        f"{stream.least_shards:,} shards, the fewest for the load; provisioned costs less with up to "
        f"{stream.even_text} of them.",
    ]


def _scalability(found: Scalability) -> str:
    modelled = {one.slots: f"{one.records_per_second:,.0f}" for one in found.modelled_capacity}
    rows = [[f"{one.slots}", one.told, modelled.get(one.slots, "–")] for one in found.measured]
    lines = [
        "## Scalability\n",
        f"The most records/s that so many task slots make visible within {found.goal_seconds:g} s (99 of 100 of each "
        f"batch), without growing lag; {found.cores} cores, `{found.writer}`, a batch every "
        f"{found.interval_seconds:g} s, {found.measured_at}.\n",
        *_table(["slots", "measured", "modelled"], rows),
    ]
    if found.modelled_demand:
        most = found.modelled_demand[-1]
        lines.append(
            f"\nModelled, not measured: {most.slots:,} slots for {most.shards:,} full shards, "
            f"{most.records_per_second:,.0f} records/s."
        )
    return "\n".join(lines) + "\n"


def _around_compaction(found: QueryFindings) -> str:
    before, after = found.before.text(".2f"), found.after.text(".2f")
    return after if found.before == found.after else f"{before} → {after}"


def _rivals(found: Rivalry) -> str:
    figures = [
        [
            NAMES.get(one.contender, one.contender),
            f"{one.events_per_second:,.0f}",
            f"{one.batch_seconds:.2f}",
            f"{one.cpu_microseconds:.0f}",
        ]
        for one in found.figures
    ]
    ordeals = [
        [
            NAMES.get(one.contender, one.contender),
            f"{one.count} {one.ordeal}",
            *(f"{count:,}" for count in (one.lost, one.outdated, one.doubled, one.undeleted, one.read_again)),
        ]
        for one in found.ordeals
    ]
    lines = [
        "## Beside what people write themselves\n",
        f"{found.batches} batches of {found.batch:,} events on {found.cores} cores, {found.measured_at}.\n",
        *_table(["", "events/s", "batch, s", "CPU µs per event"], figures),
        "",
        *_table(["", "ordeal", "lost", "outdated", "doubled", "not deleted", "events written again"], ordeals),
    ]
    lines += [f"\n**Did not get to the end:** {NAMES.get(name, name)}" for name in found.refused]
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_line(head), "|---" * len(head) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
