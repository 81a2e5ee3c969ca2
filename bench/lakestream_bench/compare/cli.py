"""`lakestream compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from lakestream_bench._options import require_known

if TYPE_CHECKING:
    from lakestream_bench.compare.results import Results
    from lakestream_bench.compare.run import Comparison
    from lakestream_bench.compare.scenarios import Scenario

Made = TypeVar("Made")
MEASURED = ("size", "rows", "repetitions", "arm", "scenario", "everything", "requests")
"""Options of what is measured."""

app = typer.Typer(
    help="Write the same events into JSON and Hudi tables, and compare costs and answers.",
    invoke_without_command=True,
    add_completion=False,
)


@app.callback()
def compare(  # noqa: PLR0913, PLR0917 - options of a command
    context: typer.Context,
    size: Annotated[float, typer.Option(min=0.1, max=100, help="Batches, through those of the default.")] = 1.0,
    rows: Annotated[int, typer.Option(min=10, max=1_000_000, help="Events per batch, in the mean.")] = 2_000,
    repetitions: Annotated[int, typer.Option(min=1, max=20)] = 3,
    arm: Annotated[list[str] | None, typer.Option(help="Only this kind of table; may be repeated.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All kinds of tables, in all scenarios.")] = False,
    requests: Annotated[bool, typer.Option(help="Count requests to S3, at a local server.")] = True,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Measure nothing; make the report anew, for another load or prices.")
    ] = False,
    out: Annotated[Path, typer.Option(file_okay=False, help="Gets the report and all figures.")] = Path(
        "build/compare"
    ),
    prices: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="A price file of your own.")] = None,
    events_per_second: Annotated[float, typer.Option(min=0, help="Your load.")] = 1_000,
    event_bytes: Annotated[
        float | None,
        typer.Option(min=1, max=1_048_576, help="Of your events. Default: as those that were written."),
    ] = None,
    new_keys: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of your events whose row stays. Default: as of those."),
    ] = None,
    retention_days: Annotated[float, typer.Option(min=0, help="How long you keep rows.")] = 30,
    queries_per_day: Annotated[float, typer.Option(min=0, help="How often you ask.")] = 1_000,
    batch_seconds: Annotated[float, typer.Option(min=1, help="Between your batches.")] = 60,
    shards: Annotated[int, typer.Option(min=0, help="Of your provisioned stream; 0: it is on demand.")] = 0,
) -> None:
    """Compare tables on the same events: speed, space, answers, money.

    What was measured is kept in the folder; a run that was interrupted is taken up where it was.
    """
    if report_only:
        _require_given_by_nobody(context, MEASURED)
    report = _report_of(context, prices, out)
    comparison = _comparison(_chosen(scenario, arm, everything=everything), size, rows, repetitions, requests=requests)
    failures = report(_kept(out) if report_only else _measured(comparison, out))
    typer.echo(f"report: {out / 'report.html'}")
    if failures:
        raise typer.Exit(1)


def _report_of(context: typer.Context, prices: Path | None, out: Path) -> Callable[[Results], int]:
    """What makes the report; whatever is wrong with its options is told now, and not when all is measured."""
    from lakestream_bench.compare.money import Load, load_prices
    from lakestream_bench.compare.report import write_report
    from lakestream_bench.rivals import load_rivalry
    from lakestream_bench.scalability.figures import load_scalability

    # Options of a load are called as its fields are.
    asked = {one.name: context.params.get(one.name) for one in fields(Load)}
    given = {name: float(value) for name, value in asked.items() if value is not None}
    _made(partial(Load, **given))
    paid = _made(partial(load_prices, prices))
    scalability = _made(partial(load_scalability, out / "scalability.json"))
    rivalry = _made(partial(load_rivalry, out / "rivals.json"))
    return lambda results: _made(partial(write_report, results, given, paid, out, scalability, rivalry))


def _comparison(
    chosen: tuple[tuple[Scenario, ...], tuple[str, ...]], size: float, rows: int, repetitions: int, *, requests: bool
) -> Comparison:
    from lakestream_bench.compare.run import Comparison

    scenarios, arms = chosen
    sized = tuple(replace(one, rows=rows).scaled(size) for one in scenarios)
    return Comparison(sized, arms, repetitions, warm_repetitions=1, requests=requests)


def _kept(out: Path) -> Results:
    from lakestream_bench.compare.results import load_results

    return _made(partial(load_results, out / "results.json"))


def _require_given_by_nobody(context: typer.Context, names: Sequence[str]) -> None:
    """Options of what is measured change no report of what was.

    Raises:
        typer.BadParameter: names those that are given.
    """
    options = {one.name: one.opts[0] for one in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in names}
    if given := [
        options[name] for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"
    ]:
        raise typer.BadParameter(f"--report-only measures nothing, so leave out {', '.join(given)}")


def _chosen(
    scenario: Sequence[str] | None, arm: Sequence[str] | None, *, everything: bool
) -> tuple[tuple[Scenario, ...], tuple[str, ...]]:
    from lakestream_bench.compare import arms, scenarios

    require_known("arm", arm or (), arms.ARMS)
    require_known("scenario", scenario or (), scenarios.SCENARIOS)
    # Each once, or trials would be run and counted twice.
    names = dict.fromkeys(scenario or (scenarios.SCENARIOS if everything else scenarios.MAIN))
    kinds = dict.fromkeys(arm or (arms.ARMS if everything else arms.MAIN))
    return tuple(scenarios.SCENARIOS[name] for name in names), tuple(kinds)


def _measured(comparison: Comparison, out: Path) -> Results:
    from lakestream_bench._processes import no_process_left
    from lakestream_bench.compare.run import run

    try:
        out.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=out).close()
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be written to: {error.strerror}") from error
    with no_process_left():
        results = run(comparison, out / "trials")
    results.save(out / "results.json")
    return results


def _made(make: Callable[[], Made]) -> Made:
    try:
        return make()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
