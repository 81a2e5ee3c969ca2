"""`lakestream table`."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from lakestream.command import explained
from lakestream.logs import log_to_stderr
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, require_extra, target_of

table_app = typer.Typer(help="Show what a table is: files, timeline, services, quarantine.", add_completion=False)


class Form(StrEnum):
    """How the report is written."""

    TEXT = "text"
    JSON = "json"


@table_app.command()
def table(
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    limit: Annotated[int, typer.Option(min=0, help="Entries of a Hudi table's timeline, the newest.")] = 15,
    output: Annotated[Form, typer.Option("--output", "-o", help="text, or one object of JSON.")] = Form.TEXT,
) -> None:
    """Show what a table is: its files, what each commit did, what is waiting, what is in quarantine."""
    log_to_stderr("WARNING")
    with explained():
        require_extra("fastavro")
        from lakestream.table.look import look
        from lakestream.table.text import as_text

        report = look(target_of(path, file, writer), limit)
        if output is Form.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
        else:
            typer.echo(as_text(report, datetime.now(UTC)), nl=False)
