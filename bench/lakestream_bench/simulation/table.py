"""Results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lakestream_bench.simulation.costs import BatchCosts
from lakestream_bench.simulation.policies import LakeStream
from lakestream_bench.simulation.summary import Case, totals


def show(cases: Sequence[Case], costs: BatchCosts) -> None:
    """Print a line per scenario, size and policy, the sums, and where a goal is missed or a rival wins."""
    console = Console(highlight=False, width=110)
    table = Table("scenario", "shards", "policy", title=f"writer {costs.writer}: {costs.source}")
    for name in ("late s", "executor-s", "× oracle", "actions/h", "turns"):
        table.add_column(name, justify="right")
    for case in cases:
        for index, result in enumerate(case.results):
            cost = case.cost(result)
            table.add_row(
                *((case.scenario, f"{case.shards:,}") if index == 0 else ("", "")),
                result.policy,
                f"{result.late_seconds:,.0f}",
                f"{result.executor_seconds:,.0f}",
                "–" if cost is None else f"{cost:.2f}",
                f"{result.actions_per_hour:.1f}",
                str(result.turns),
                style="bold" if result.policy == LakeStream.name else None,
                end_section=result is case.results[-1],
            )
    console.print(table)
    sums = Table("policy", title=f"over all {len(cases)} cases")
    for name in ("late s", "× oracle (mean)", "actions/h"):
        sums.add_column(name, justify="right")
    for line in totals(cases):
        cost_text = "–" if line.cost is None else f"{line.cost:.2f}"
        sums.add_row(line.policy, f"{line.late_seconds:,.0f}", cost_text, f"{line.actions_per_hour:.2f}")
    console.print(sums)
    for case in cases:
        for text in case.verdicts():
            console.print(f"{case.scenario}, {case.shards:,} shards: {text}", soft_wrap=True)
