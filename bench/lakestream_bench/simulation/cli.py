"""`lakestream simulate`."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakestream_bench._options import FIT, require_known

if TYPE_CHECKING:
    from lakestream_bench.simulation.costs import BatchCosts
    from lakestream_bench.simulation.run import Task
    from lakestream_bench.simulation.summary import Case

WRITERS = ("json", "cow", "mor")

app = typer.Typer(
    help="Put the autoscaler through days of load in seconds.", invoke_without_command=True, add_completion=False
)


@app.callback()
def simulate(  # noqa: PLR0913, PLR0917 - options of a command
    scenario: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    shards: Annotated[list[int] | None, typer.Option(help="Only streams of this size; may be repeated.")] = None,
    unseen: Annotated[bool, typer.Option("--unseen", help="Loads with which no rule was made, not the suite.")] = False,
    writer: Annotated[str, typer.Option(help="Whose batch costs: json, cow or mor.")] = "mor",
    fit: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help=FIT),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report, with plots, to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write all figures as JSON to this file.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Runs of each, with other noise, starts and mishaps.")] = 5,
    cores: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Of each executor. Default: 1 up to 4 shards, 2 up to 64, 4 beyond."),
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="At work at once. Default: the machine's cores.")] = None,
) -> None:
    """Run LakeStream's own policy and its rivals through scenarios, and compare lag and executors."""
    from lakestream_bench.simulation.costs import load_costs
    from lakestream_bench.simulation.page import page
    from lakestream_bench.simulation.run import BOUND, POLICIES, SEEDS, Task, scenario_of
    from lakestream_bench.simulation.scenarios import SCENARIOS, SIZES
    from lakestream_bench.simulation.table import show
    from lakestream_bench.simulation.unseen import UNSEEN

    known = UNSEEN if unseen else SCENARIOS
    _require_known(scenario or (), known, shards or (), writer)
    _require_writable(html, out)
    try:
        costs = load_costs(writer, fit)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    places = [(name, count) for name in dict.fromkeys(scenario or known) for count in dict.fromkeys(shards or SIZES)]
    chosen = range(SEEDS[0], SEEDS[0] + seeds)
    tasks = [
        Task(name, count, policy, writer, fit, seed, cores)
        for name, count in places
        for policy in (*POLICIES, BOUND)
        for seed in chosen
    ]
    found = _simulated(tasks, processes or os.cpu_count() or 1)
    show(found, costs)
    if out is not None:
        out.write_text(_figures(found, costs, chosen), "utf-8")
    if html is not None:
        scenarios = {place: scenario_of(Task(*place, "", writer, fit, chosen[0], cores), costs) for place in places}
        html.write_text(page(found, scenarios, costs), "utf-8")
        typer.echo(f"report: {html}")


def _simulated(tasks: Sequence[Task], processes: int) -> list[Case]:
    from lakestream_bench._processes import no_process_left
    from lakestream_bench.simulation.run import simulate_all
    from lakestream_bench.simulation.summary import cases

    with no_process_left():
        return cases(simulate_all(tasks, processes))


def _require_known(scenarios: Sequence[str], known: Collection[str], shards: Sequence[int], writer: str) -> None:
    require_known("scenario", scenarios, known)
    require_known("writer", (writer,), WRITERS)
    if wrong := [count for count in shards if not 1 <= count <= 10_000]:
        raise typer.BadParameter(f"{wrong[0]} shards; choose from 1 to 10,000")


def _require_writable(*files: Path | None) -> None:
    """Now, and not when all has been simulated."""
    for file in filter(None, files):
        try:
            file.open("ab").close()
        except OSError as error:
            raise typer.BadParameter(f"{file} cannot be written: {error.strerror}") from error


def _figures(found: Sequence[Case], costs: BatchCosts, seeds: Sequence[int]) -> str:
    """As a line of JSON."""
    figures = {"costs": asdict(costs), "seeds": list(seeds), "cases": [asdict(case) for case in found]}
    return json.dumps(figures) + "\n"
