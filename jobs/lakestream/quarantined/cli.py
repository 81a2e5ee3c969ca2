"""`lakestream quarantine list` and `show`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lakestream.command import File, explained, load, named
from lakestream.logs import log_to_stderr
from lakestream.query.form import MOST, SHOWN, Format, require_stdout
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, described, log_of, require_text

if TYPE_CHECKING:
    import pyarrow as pa

    from lakestream.storage import StoreSettings

quarantine_app = typer.Typer(
    help="Look at the unusable records that a writer has kept, and replay them.",
    no_args_is_help=True,
    add_completion=False,
)


@quarantine_app.command("list")
def list_reasons(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """Count the records of committed batches by the reason why they are there, and say how far a replay is."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.log import ObstoreLogStore, current_request
        from lakestream.quarantined.records import COUNTED, tally
        from lakestream.quarantined.text import as_text

        log = log_of(path, file, writer)
        typer.echo(as_text(tally(_records(log, COUNTED))), nl=False)
        if (state := current_request(ObstoreLogStore.at(log))) is not None:
            typer.echo(state)


@quarantine_app.command()
def show(
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    reason: Annotated[str | None, typer.Option(help="Only those whose reason begins with this text.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, max=MOST, help="Records at most. Default: 20 for a table, else all.")
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How records are written to stdout.")] = Format.TABLE,
) -> None:
    """Show the records, oldest batch first. Their bytes are as they came with -o parquet and arrow, else text."""
    log_to_stderr("WARNING")
    with explained():
        import pyarrow as pa

        from lakestream.quarantined.records import COUNTED, SCHEMA, of_reason, tally
        from lakestream.quarantined.text import as_list, readable
        from lakestream.quarantined.wrapped import shown_by
        from lakestream.query.output import write_rows
        from lakestream.query.rows import first

        require_stdout(output)
        if reason is not None:
            require_text("--reason", reason)
        target, document = described(path, file, writer)
        log = target.required_log()
        found = of_reason(reason, _records(log, SCHEMA.names))
        rows = pa.RecordBatchReader.from_batches(SCHEMA, found)
        at_most = SHOWN if limit is None and output is Format.TABLE else limit
        rows = first(at_most, rows)
        count = write_rows(rows if output.is_binary else readable(rows, shown_by(document)), output, sys.stdout.buffer)
        sys.stdout.flush()
        more = " (there may be more: --limit)" if count == at_most else ""
        typer.echo(f"{count:,} records{more}", err=True)
        if count == 0 and limit != 0 and reason is not None and (others := tally(_records(log, COUNTED))):
            typer.echo(f"no reason begins with {reason!r}; there are: {as_list(others)}", err=True)


@quarantine_app.command()
def replay(
    file: File,
    writer: Annotated[str, typer.Option(help="Name of a writer, one of spec.writers.")],
    despite_deletes: Annotated[
        bool,
        typer.Option("--despite-deletes", help="Also records older than the deletes that a Hudi table remembers."),
    ] = False,
) -> None:
    """Ask for the records to be read once more, by the schema and the transform that the document has now.

    The writer's driver does it, the one that runs or the next one: what is usable now goes to the table, each record
    once; what is not stays in quarantine, with its new reason.
    """
    log_to_stderr("WARNING")
    with explained():
        from lakestream import settings
        from lakestream.quarantined.replay import ask
        from lakestream.query.target import of_writer

        document = load(file)
        chosen = document.writer(writer)
        log = of_writer(document, writer, os.environ).required_log()
        definition = settings.definition(document, chosen)
        known_for = None if despite_deletes or chosen.hudi is None else chosen.hudi.deletes_remembered
        asked = ask(log, definition, datetime.now(UTC), deletes_known_for=known_for)
        request = asked.request
        typer.echo(
            f"replay {request.number}: {request.records:,} records in {len(request.files):,} files. The writer's "
            f"driver reads them between its batches; if none runs: lakestream ingest -f {named(file)} --writer {writer}"
        )
        for count, why in (
            (asked.rejected_by_the_same, "rejected by the very schema and transform that the document has"),
            (asked.made_of_several, "made by a transform of several records each"),
        ):
            if count:
                typer.echo(f"{count:,} stay in quarantine: {why}", err=True)


def _records(log: StoreSettings, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    from lakestream.log import ObstoreLogStore, rejected_files
    from lakestream.places import QUARANTINE
    from lakestream.quarantined.records import read_records

    return read_records(log / QUARANTINE, rejected_files(ObstoreLogStore.at(log)), columns)
