"""The findings as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.findings import ScenarioFindings
from lakestream_bench.compare.method import ENGINES, NATIVE, SPARK
from lakestream_bench.compare.queries import Kind
from lakestream_bench.compare.results import Results


def markdown(results: Results, found: Sequence[ScenarioFindings]) -> str:
    """Tables of the most important figures."""
    machine = results.setup.machine
    parts = [f"# Comparison of {results.measured_at}\n\n{machine['processor']}, {machine['cores']} cores.\n"]
    parts += [_scenario(one) for one in found]
    return "\n".join(parts)


def _scenario(found: ScenarioFindings) -> str:
    lines = [f"## {found.scenario.name}: {found.scenario.story}\n"]
    lines += [f"**No figures:** {failure}\n" for failure in found.failures]
    if not found.arms:
        return "\n".join(lines)
    titles = [arm.title for arm in found.arms]
    rows = [
        ("events/s, backlog", [arm.rows_per_second.text(",.0f") for arm in found.arms]),
        ("batch, s", [arm.batch_seconds.text(".2f") for arm in found.arms]),
        ("freshness p50 / p99, s", [f"{arm.freshness.p50:.1f} / {arm.freshness.p99:.1f}" for arm in found.arms]),
        ("CPU-s per million events", [arm.cpu_per_million.text(",.0f") for arm in found.arms]),
        ("write amplification", [arm.write_amplification.text(".2f") for arm in found.arms]),
        ("space amplification", [arm.space_amplification.text(".1f") for arm in found.arms]),
        ("files at the end", [arm.files.text(",.0f") for arm in found.arms]),
    ]
    for kind in Kind:
        for engine in (SPARK, NATIVE):
            asked = [arm.query(kind, engine) for arm in found.arms]
            cells = ["–" if one is None else f"{one.before.text('.2f')} → {one.after.text('.2f')}" for one in asked]
            rows.append((f"{kind}, {engine}, s, before → after compaction", cells))
    bills = {bill.arm: bill for bill in found.money.bills}
    rows.append(("$ per TB taken in", [f"{bills[arm.arm].per_terabyte:,.2f}" for arm in found.arms]))
    rows.append(("$ per 1,000 queries", [f"{bills[arm.arm].per_thousand_queries:,.2f}" for arm in found.arms]))
    lines += ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows]
    lines.append("")
    lines += [
        f"- {ARMS[one.challenger].title} costs less than {ARMS[one.holder].title}: {one}."
        for one in found.money.break_evens
    ]
    stream = found.money.stream
    lines.append(
        f"- The stream costs ${stream.on_demand:,.2f} a month on demand, ${stream.provisioned:,.2f} provisioned with "
        f"{stream.least_shards:,} shards, the fewest for the load; provisioned costs less with up to "
        f"{stream.even_text} of them."
    )
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
