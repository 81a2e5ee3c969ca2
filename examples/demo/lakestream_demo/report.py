"""Draws a finished run: what was made, whether it is right, and three looks at the table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lakestream_api import rounded_size
from lakestream_demo.result import CheckResult, DemoResult, Freshness, QueryResult, TableResult
from lakestream_demo.settings import Lake

_MEANING = (
    "Each acknowledged record is a row of the JSON files, or in quarantine if it is malformed; "
    "the Hudi table has the latest version of each order that was not deleted."
)
_FRESH = (
    "From a record's arrival in Kinesis to its being visible in the table, once the applications were warm; "
    "“all” are their first batches too."
)


def draw_report(result: DemoResult, folder: str) -> RenderableType:
    """The whole report; `folder` is where the run's files are, as the person would write it."""
    return Group(
        Rule("What was made", align="left", style="dim"),
        _tables(result),
        Text(),
        Rule("How fresh it was", align="left", style="dim"),
        _freshness(result.tables),
        Text(_FRESH, style="dim"),
        Text(),
        Rule("Three looks at the Hudi table", align="left", style="dim"),
        *(_query(query) for query in result.queries),
        Rule("Is it right?", align="left", style="dim"),
        _audit(result.audit),
        Text(_MEANING, style="dim"),
        Text(),
        Text(_what_is_left(result, folder), style="dim"),
        _verdict(result),
    )


def _grid(*headings: str) -> Table:
    """A table whose first column is text, which is wrapped on a narrow terminal, and all others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=index > 0)
    return table


def _tables(result: DemoResult) -> Table:
    table = _grid("", "records", "rows", "files", "size")
    table.add_row("stream", f"{result.load.acknowledged:,}")
    for made in result.tables:
        table.add_row(_name(made), f"{made.records:,}", f"{made.rows:,}", f"{made.files:,}", rounded_size(made.bytes))
    return table


def _freshness(tables: Sequence[TableResult]) -> Table:
    table = _grid("", "batches", "s/batch", "fresh p50", "p99", "all p50", "all p99")
    for made in tables:
        quantiles = (*_quantiles(made.freshness_warm), *_quantiles(made.freshness_all))
        table.add_row(_name(made), f"{made.batches:,}", f"{made.batch_seconds_p50:.2f}", *quantiles)
    return table


def _name(made: TableResult) -> str:
    return f"{made.writer}: {made.kind}"


def _quantiles(fresh: Freshness | None) -> tuple[str, str]:
    return (f"{fresh.p50_seconds:.1f} s", f"{fresh.p99_seconds:.1f} s") if fresh else ("–", "–")


def _query(query: QueryResult) -> RenderableType:
    rows = _grid(*query.columns)
    for row in query.rows:
        rows.add_row(*row)
    heading = Text.assemble((query.name, "bold"), (f"  {query.seconds:.1f} s", "dim"))
    sql = Syntax(query.sql, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
    return Group(Text(), heading, sql, Padding(rows, (0, 0, 1, 2)))


def _audit(checks: Sequence[CheckResult]) -> Table:
    table = _grid("  ", "expected", "found", "missing", "doubled", "altered", "unexpected")
    for check in checks:
        mark = ("✓ ", "green") if check.passed else ("✗ ", "bold red")
        counts = (check.missing, check.doubled, check.altered, check.unexpected)
        table.add_row(
            Text.assemble(mark, check.name),
            f"{check.expected:,}",
            f"{check.found:,}",
            *(Text(f"{count:,}", style="bold red" if count else "") for count in counts),
        )
    return table


def _what_is_left(result: DemoResult, folder: str) -> str:
    if result.settings.get("lake") == Lake.S3:
        return (
            f"In {folder}: result.json, queries.sql, lakestream.yaml, logs/. "
            "The lake is gone: its S3 server kept it in memory, and ended with the run."
        )
    return f"In {folder}: result.json, queries.sql, lakestream.yaml, lake/, logs/."


def _verdict(result: DemoResult) -> Text:
    if result.passed:
        return Text.assemble(
            ("PASSED", "bold green"),
            f"  All {result.load.acknowledged:,} acknowledged records are in the lake, each exactly once.",
        )
    return Text.assemble(("FAILED", "bold red"), "  The lake is not what was sent: see the counts above.")
