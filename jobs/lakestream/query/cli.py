"""`lakestream query`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from lakestream.command import explained
from lakestream.logs import log_to_stderr
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, require_extra, target_of
from lakestream.query.output import SHOWN, Format, require_redirected
from lakestream.query.question import TABLE, Asked, Engine, ask

query_app = typer.Typer(help="Ask a table: as it is, as it was, what changed.", add_completion=False)


@query_app.command()
def query(  # noqa: PLR0913, PLR0917 - an option each
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    at: Annotated[
        str | None, typer.Option(help="The table as it was: '10 minutes ago', 2026-11-01T12:00Z, an instant.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="The rows that commits after this moment have written.")] = None,
    until: Annotated[str | None, typer.Option(help="With --since: and up to this moment.")] = None,
    changes: Annotated[
        bool,
        typer.Option("--changes", help="With --since: inserted, updated and deleted rows, as they were and are."),
    ] = False,
    read_optimized: Annotated[
        bool, typer.Option("--read-optimized", help="Base files only, as old as the last compaction.")
    ] = False,
    sql: Annotated[str | None, typer.Option(help=f"A query; the table is called {TABLE}.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Rows at most. Default: 20 for tables without --sql, else all.")
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How rows are written to stdout.")] = Format.TABLE,
    engine: Annotated[Engine, typer.Option(help="native: without Spark. auto: Spark where that is not right.")] = (
        Engine.AUTO
    ),
) -> None:
    """Ask a table: as it is (the default), as it was (--at), or what changed (--since).

    Rows go to stdout; what was read, and what answered, is told on stderr.
    """
    began = time.monotonic()
    log_to_stderr("WARNING")
    with explained():
        require_extra("duckdb", "hudi")
        from lakestream.query.answer import answer

        now = datetime.now(UTC)
        question = ask(at, since, until, changes=changes, read_optimized=read_optimized, now=now)
        require_redirected(output)
        if limit is None and output is Format.TABLE and sql is None:
            limit = SHOWN
        told = answer(
            target_of(path, file, writer), Asked(question, sql, limit, now), engine, output, sys.stdout.buffer
        )
        sys.stdout.flush()
        typer.echo(f"{told} in {time.monotonic() - began:.1f} s", err=True)
