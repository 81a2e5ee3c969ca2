"""`lakestream simulate`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Put the autoscaler through days of load in seconds.", invoke_without_command=True)


@app.callback()
def simulate(
    scenario: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    shards: Annotated[list[int] | None, typer.Option(help="Only streams of this size; may be repeated.")] = None,
    writer: Annotated[str, typer.Option(help="Whose batch costs: json, cow or mor.")] = "mor",
    fit: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Batch costs from `python -m lakestream_bench batch_times`."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report, with plots, to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write all figures as JSON to this file.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 11,
    processes: Annotated[int | None, typer.Option(min=1, help="At work at once. Default: the machine's cores.")] = None,
) -> None:
    """Run LakeStream's own policy and its rivals through scenarios, and compare lag and executors."""
    from lakestream_bench.simulation.costs import load_costs
    from lakestream_bench.simulation.page import page
    from lakestream_bench.simulation.run import POLICIES, Task, scenario_of, simulate_all
    from lakestream_bench.simulation.scenarios import SCENARIOS, SIZES
    from lakestream_bench.simulation.summary import cases
    from lakestream_bench.simulation.table import show

    if unknown := set(scenario or ()) - set(SCENARIOS):
        raise typer.BadParameter(
            f"there is no scenario {', '.join(sorted(unknown))}; choose from: {', '.join(SCENARIOS)}"
        )
    if fewest := [count for count in shards or () if not 1 <= count <= 10_000]:
        raise typer.BadParameter(f"{fewest[0]} shards; choose from 1 to 10,000")
    try:
        costs = load_costs(writer, fit)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    places = [(name, count) for name in scenario or SCENARIOS for count in shards or SIZES]
    tasks = [Task(name, count, policy, writer, fit, seed) for name, count in places for policy in POLICIES]
    found = cases(simulate_all(tasks, processes or os.cpu_count() or 1))
    show(found, costs)
    if out is not None:
        figures = {"costs": asdict(costs), "seed": seed, "cases": [asdict(case) for case in found]}
        out.write_text(json.dumps(figures) + "\n", "utf-8")
    if html is not None:
        scenarios = {
            (name, count): scenario_of(Task(name, count, "", writer, fit, seed), costs) for name, count in places
        }
        html.write_text(page(found, scenarios, costs), "utf-8")
        typer.echo(f"report: {html}")
