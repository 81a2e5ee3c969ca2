"""`lakestream query`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

import typer

from lakestream.command import explained
from lakestream.logs import log_to_stderr
from lakestream.query.form import MOST, SHOWN, Format, answering, require_stdout
from lakestream.query.kept import kept_at
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, require_extra, target_of
from lakestream.query.question import TABLE, Asked, Engine, SparkRun, ask

query_app = typer.Typer(help="Ask a table: as it is, as it was, what changed.", add_completion=False)

_Output: TypeAlias = Annotated[
    Format | None, typer.Option("--output", "-o", help="How rows are written to stdout. Default: table.")
]
_To: TypeAlias = Annotated[
    str | None,
    typer.Option(help="An empty folder, s3:// too, into which Spark writes Parquet; {date} in it is today's."),
]
_Cluster: TypeAlias = Annotated[
    bool, typer.Option("--cluster", help="Spark answers, with the master and class path that spark-submit was given.")
]


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
        int | None, typer.Option(min=0, max=MOST, help="Rows at most. Default: 20 for tables without --sql, else all.")
    ] = None,
    output: _Output = None,
    to: _To = None,
    engine: Annotated[Engine, typer.Option(help="native: without Spark. auto: Spark where that is not right.")] = (
        Engine.AUTO
    ),
    cluster: _Cluster = False,
) -> None:
    """Ask a table: as it is (the default), as it was (--at), or what changed (--since).

    Rows go to stdout; what was read, and what answered, is told on stderr.
    """
    began = time.monotonic()
    log_to_stderr("WARNING")
    with explained():
        from lakestream.query.answer import answer

        now = datetime.now(UTC)
        question = ask(at, since, until, changes=changes, read_optimized=read_optimized, now=now)
        engine = answering(engine, output, on_cluster=cluster, is_kept=to is not None)
        if engine is not Engine.SPARK:
            require_extra("duckdb", "hudi")
        form = output or Format.TABLE
        require_stdout(form)
        if limit is None and form is Format.TABLE and sql is None and to is None:
            limit = SHOWN
        target = target_of(path, file, writer)
        run = SparkRun(cluster, None if to is None else kept_at(to, target, now, on_cluster=cluster))
        told = answer(target, Asked(question, sql, limit, now), engine, run, form, sys.stdout.buffer)
        sys.stdout.flush()
        typer.echo(f"{told} in {time.monotonic() - began:.1f} s", err=True)
