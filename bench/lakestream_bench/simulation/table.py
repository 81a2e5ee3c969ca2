"""Results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lakestream_bench.simulation.costs import BatchCosts
from lakestream_bench.simulation.policies import LakeStream
from lakestream_bench.simulation.run import BOUND
from lakestream_bench.simulation.summary import Case, missed, totals


def show(cases: Sequence[Case], costs: BatchCosts) -> None:
    """Print a line per scenario, size and policy, the sums, and where a goal is missed or a rival does better."""
    console = Console(highlight=False, width=118)
    table = Table("scenario", "shards", "policy", title=f"writer {costs.writer}: {costs.source}")
    for name in ("late s", "× bound", "actions/h", "flaps"):
        table.add_column(name, justify="right")
    for case in cases:
        for index, name in enumerate(case.policies):
            runs = case.of(name)
            assert runs is not None
            bound = name == BOUND
            table.add_row(
                *((case.scenario, f"{case.shards:,}") if index == 0 else ("", "")),
                name,
                runs.late.text(",.0f"),
                "–" if runs.cost is None else runs.cost.text(".2f"),
                "" if bound else runs.actions.text(".1f"),
                "" if bound else runs.flaps.text(".0f"),
                style="bold" if name == LakeStream.name else None,
                end_section=name == case.policies[-1],
            )
    console.print(table)
    kept = sum(case.can_be_kept for case in cases)
    sums = Table("policy", title=f"over the {kept} of {len(cases)} cases in which anybody can keep the goal")
    for name in ("late s", "× bound (mean)", "actions/h (all cases)"):
        sums.add_column(name, justify="right")
    for line in totals(cases):
        cost_text = "–" if line.cost is None else f"{line.cost:.2f}"
        sums.add_row(line.policy, f"{line.late_seconds:,.0f}", cost_text, f"{line.actions_per_hour:.2f}")
    console.print(sums)
    for text in missed(cases):
        console.print(text, soft_wrap=True)
