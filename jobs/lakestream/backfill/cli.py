"""`lakestream backfill`."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakestream.command import File, WithDefault, explained, load, named
from lakestream.errors import RequestError
from lakestream.logs import log_to_stderr
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, log_for_requests
from lakestream_api import Operation, Writer

if TYPE_CHECKING:
    from lakestream.backfill.span import Asked


class _FilesOrSpan(WithDefault):
    default = "files"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_span = any(arg.split("=")[0] in ("--from", "--to") for arg in args)
        return super().parse_args(ctx, ["span", *args] if is_span and args[0] not in self.commands else args)


backfill_app = typer.Typer(
    cls=_FilesOrSpan,
    help="Take files, or a span of its stream once more, into a writer's table, between the batches of the stream: "
    "lakestream backfill -f lakestream.yaml --writer NAME FILES; or … --from TIME --to TIME.",
    no_args_is_help=True,
    add_completion=False,
)


_PATIENCE = 15.0
"""Seconds for which somebody waits for Kinesis: a driver has more."""
_WriterName = Annotated[str, typer.Option("--writer", help="Name of a writer, one of spec.writers.")]
_Rows = Annotated[
    bool, typer.Option("--rows", help="They hold rows as the table has them, and not events: no transform is applied.")
]
_Again = Annotated[
    bool, typer.Option("--again", help="Also files that were asked for before, to a table that keeps every row.")
]
_DespiteDeletes = Annotated[
    bool,
    typer.Option("--despite-deletes", help="Though keys may have been deleted longer ago than a table remembers."),
]


@backfill_app.command()
def files(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Files of JSON lines or Parquet, or folders of them; s3:// too."),
    ],
    file: File,
    writer: _WriterName,
    rows: _Rows = False,
    again: _Again = False,
    despite_deletes: _DespiteDeletes = False,
) -> None:
    """Ask for files to be taken into the table. The writer's driver does it, the one that runs or the next one.

    Each line or row is an event, as if it came from the stream: with schema, transform and quarantine. The table of a
    JSON writer is taken as the rows that it has.
    """
    log_to_stderr("WARNING")
    with explained():
        from lakestream import settings
        from lakestream.backfill.ask import ask, told
        from lakestream.backfill.find import find_files
        from lakestream.log import ObstoreLogStore
        from lakestream.places import for_command
        from lakestream.query.ddl import columns_of
        from lakestream.query.target import of_writer
        from lakestream.storage import LakePath, S3Settings, StoreSettings

        document = load(file)
        chosen = document.writer(writer)
        s3 = S3Settings.from_environment(os.environ, document.spec.source.kinesis.region)
        target = of_writer(document, writer, os.environ)
        places = (for_command(StoreSettings(LakePath.parse(path), s3)) for path in paths)
        found = [one for place in places for one in find_files(place, target.table.path)]
        if not despite_deletes:
            _require_no_deletes(chosen)
        columns = columns_of(document.spec.event_schema)
        request = ask(
            ObstoreLogStore.at(target.log_for_requests()),
            settings.definition(document, chosen),
            list({one.path: one for one in found}.values()),
            datetime.now(UTC),
            columns=None if columns is None else list(columns),
            is_table=rows,
            once=not again and _keeps_every_row(chosen),
        )
        typer.echo(
            f"{told(request)}. The writer's driver takes them between its batches; if none runs: "
            f"lakestream ingest -f {named(file)} --writer {writer}"
        )


@backfill_app.command()
def span(
    file: File,
    writer: _WriterName,
    since: Annotated[
        str, typer.Option("--from", help="Arrival time: '3 hours ago', 2026-11-20T00:00Z, …; UTC without an offset.")
    ],
    until: Annotated[str, typer.Option("--to", help="Arrival time up to which it goes, which has passed.")] = "now",
    again: Annotated[
        bool, typer.Option("--again", help="Also what the writer has read before, to a table that keeps every row.")
    ] = False,
    despite_deletes: _DespiteDeletes = False,
) -> None:
    """Ask for what arrived in the writer's stream between two times to be read once more, into the table.

    The writer's driver does it, the one that runs or the next one. Where the stream itself is read stays as it is.
    """
    log_to_stderr("WARNING")
    with explained():
        from lakestream import settings
        from lakestream.backfill.span import Terms, ask_for_span, require_times, span_of
        from lakestream.kinesis import HttpKinesisClient
        from lakestream.log import ObstoreLogStore
        from lakestream.query.target import of_writer

        document = load(file)
        chosen = document.writer(writer)
        require_times(since, until)
        source = replace(settings.kinesis_settings(document.spec.source.kinesis, chosen), patience=_PATIENCE)
        client = HttpKinesisClient(source)
        try:
            stream, now = client.describe_stream_summary(), client.now()
        finally:
            client.close()
        asked = ask_for_span(
            ObstoreLogStore.at(of_writer(document, writer, os.environ).log_for_requests()),
            settings.definition(document, chosen),
            span_of(since, until, now),
            stream,
            now,
            Terms(
                keeps_every_row=_keeps_every_row(chosen),
                again=again,
                may_lose=source.skip_losses,
                deletes_known_for=None if despite_deletes or chosen.hudi is None else chosen.hudi.deletes_remembered,
            ),
        )
        _tell_span(asked, source.stream, f"lakestream ingest -f {named(file)} --writer {writer}")


def _tell_span(asked: Asked, stream: str, command: str) -> None:
    from lakestream.backfill.span import typed

    typer.echo(
        f"{asked.request}: what arrived in {stream} from {asked.span}. The writer's driver reads it between its "
        f"batches; if none runs: {command}"
    )
    if asked.left_out is not None:
        typer.echo(
            f"What arrived from {typed(asked.left_out)} on is left out: there the writer has begun to "
            "read the stream itself, and the table keeps every row (--again takes it all, and that twice)",
            err=True,
        )
    if asked.twice_from is not None:
        typer.echo(
            f"What arrived from {typed(asked.twice_from)} on, the writer has read itself, and the table "
            "has it twice then, unless it was restored to before it (--again)",
            err=True,
        )
    if asked.trimmed_before is not None:
        typer.echo(
            f"What arrived before {asked.trimmed_before:%Y-%m-%d %H:%M:%S} UTC may be trimmed, and is skipped then "
            "(onDataLoss: skip); `status` tells it",
            err=True,
        )


def _keeps_every_row(writer: Writer) -> bool:
    return writer.hudi is None or writer.hudi.operation is not Operation.UPSERT


def _require_no_deletes(writer: Writer) -> None:
    if writer.hudi is not None and (known_for := writer.hudi.deletes_remembered) is not None:
        raise RequestError(
            f"the table remembers deletes for {known_for.total_seconds() / 3600:g} h: keys that were deleted before, "
            "and are in these files, would be there again. Give --despite-deletes if there are none, if the files hold "
            "the deletes as well, or if that does no harm"
        )


@backfill_app.command()
def status(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """Say how far the request is that goes on, or the newest."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.log import ObstoreLogStore, current_request

        state = current_request(ObstoreLogStore.at(log_for_requests(path, file, writer)))
        if state is None:
            typer.echo("nobody has asked for a backfill")
            return
        typer.echo(state)
        for loss in state.taken.span.lost if state.taken.span and not state.taken.span.failed else ():
            typer.echo(f"records may have been trimmed before they were read, and were skipped: {loss}")
        left = state.request.parts[state.taken.parts : state.taken.of]
        if left and not state.is_cancelled:
            typer.echo(f"next: {left[0].part}; about {sum(one.part.rows for one in left):,} records are left")


@backfill_app.command()
def cancel(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """Take no more of the request that goes on. What is in the table by then stays there."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.log import ObstoreLogStore, cancel_request, current_request

        store = ObstoreLogStore.at(log_for_requests(path, file, writer))
        state = current_request(store)
        if state is None or state.is_done:
            raise RequestError("nothing to cancel" + ("" if state is None else f": {state}"))
        cancel_request(store, state.request.number, datetime.now(UTC))
        typer.echo(
            f"{state.request} is cancelled: the writer's driver takes no more of it, once it sees that (some seconds)"
        )
