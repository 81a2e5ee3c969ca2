"""`lakestream quarantine list` and `show`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakestream.command import explained
from lakestream.errors import SettingsError
from lakestream.logs import log_to_stderr
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, target_of
from lakestream.query.output import SHOWN, Format, require_redirected

if TYPE_CHECKING:
    import pyarrow as pa

quarantine_app = typer.Typer(
    help="Look at the unusable records that a writer has kept.", no_args_is_help=True, add_completion=False
)


@quarantine_app.command("list")
def list_reasons(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """Count the records of committed batches by the reason why they are there."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.quarantined.records import tally
        from lakestream.quarantined.text import as_text

        typer.echo(as_text(tally(_records(path, file, writer))), nl=False)


@quarantine_app.command()
def show(
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    reason: Annotated[str | None, typer.Option(help="Only those whose reason begins with this text.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Records at most. Default: 20 for a table, else all.")
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How records are written to stdout.")] = Format.TABLE,
) -> None:
    """Show the records, oldest batch first. Their bytes are as they came with -o parquet and arrow, else text."""
    log_to_stderr("WARNING")
    with explained():
        import pyarrow as pa

        from lakestream.quarantined.records import SCHEMA, of_reason
        from lakestream.quarantined.text import readable
        from lakestream.query.output import write_rows
        from lakestream.query.rows import first

        require_redirected(output)
        found = of_reason(reason, _records(path, file, writer))
        rows = pa.RecordBatchReader.from_batches(SCHEMA, found)
        at_most = SHOWN if limit is None and output is Format.TABLE else limit
        rows = first(at_most, rows)
        count = write_rows(rows if output.is_binary else readable(rows), output, sys.stdout.buffer)
        sys.stdout.flush()
        more = " (there may be more: --limit)" if count == at_most else ""
        typer.echo(f"{count:,} records{more}", err=True)


def _records(path: str | None, file: Path | None, writer: str | None) -> Iterator[pa.RecordBatch]:
    from lakestream.log import ObstoreLogStore, committed_files
    from lakestream.places import QUARANTINE
    from lakestream.quarantined.records import read_records

    target = target_of(path, file, writer)
    if target.log is None:
        raise SettingsError(
            f"nobody has claimed the table at {target.table.path}: give -f lakestream.yaml --writer NAME"
        )
    return read_records(target.log / QUARANTINE, committed_files(ObstoreLogStore.at(target.log)))
