"""Draws a finished run: what was made, whether it is right, and three looks at the table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lakestream_demo.result import CheckResult, DemoResult, QueryResult
from lakestream_demo.settings import Lake
from lakestream_demo.sheets import AUDIT_HEAD, FRESH, MEANING, Sheet, fresh, made, verdict


def draw_report(result: DemoResult, folder: str) -> RenderableType:
    """The whole report; `folder` is where the run's files are, as the person would write it."""
    return Group(
        Rule("What was made", align="left", style="dim"),
        _drawn(made(result)),
        Text(),
        Rule("How fresh it was", align="left", style="dim"),
        _drawn(fresh(result.tables)),
        Text(FRESH, style="dim"),
        Text(),
        Rule("Three looks at the Hudi table", align="left", style="dim"),
        *(_query(query) for query in result.queries),
        Rule("Is it right?", align="left", style="dim"),
        _audit(result.audit),
        Text(MEANING, style="dim"),
        Text(),
        Text(f"The report, as a page: {folder}/report.html", style="bold"),
        Text(_what_is_left(result, folder), style="dim"),
        _verdict(result),
    )


def _grid(*headings: str) -> Table:
    """A table whose first column is text, which is wrapped on a narrow terminal, and all others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=index > 0)
    return table


def _drawn(sheet: Sheet) -> Table:
    table = _grid(*sheet.head)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def _query(query: QueryResult) -> RenderableType:
    rows = _grid(*query.columns)
    for row in query.rows:
        rows.add_row(*row)
    heading = Text.assemble((query.name, "bold"), (f"  {query.seconds:.1f} s", "dim"))
    sql = Syntax(query.sql, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
    return Group(Text(), heading, sql, Padding(rows, (0, 0, 1, 2)))


def _audit(checks: Sequence[CheckResult]) -> Table:
    table = _grid(*AUDIT_HEAD)
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
    files = "result.json, history.json, queries.sql, lakestream.yaml"
    if result.settings.get("lake") == Lake.S3:
        return (
            f"In {folder}: {files}, logs/. The lake is gone: its S3 server kept it in memory, and ended with the run."
        )
    return f"In {folder}: {files}, lake/, logs/."


def _verdict(result: DemoResult) -> Text:
    mark = ("PASSED", "bold green") if result.passed else ("FAILED", "bold red")
    return Text.assemble(mark, f"  {verdict(result)}")
