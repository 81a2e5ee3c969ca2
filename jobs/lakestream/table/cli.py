"""`lakestream table`."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer

from lakestream.command import WithDefault, explained
from lakestream.errors import SettingsError
from lakestream.logs import log_to_stderr
from lakestream.query.options import OptionalFile, OptionalWriter, TablePath, described, require_text, target_of
from lakestream.statuses import PLANNED
from lakestream.texts import printable
from lakestream_api import LakeStream, merged_below

if TYPE_CHECKING:
    from lakestream.log import Work


class _ShowByDefault(WithDefault):
    default = "show"


table_app = typer.Typer(
    cls=_ShowByDefault,
    help="Show what a table is: files, timeline, services, quarantine (`show`, the default); or have it tended to.",
    add_completion=False,
)
savepoint_app = typer.Typer(help="Keep the table as it is now.", no_args_is_help=True)
table_app.add_typer(savepoint_app, name="savepoint")

Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Ask for it. Without, only what it would come to is told.")]


class Form(StrEnum):
    """How the report is written."""

    TEXT = "text"
    JSON = "json"


@table_app.command()
def show(
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    limit: Annotated[int, typer.Option(min=0, help="Entries of a Hudi table's timeline, the newest.")] = 15,
    output: Annotated[Form, typer.Option("--output", "-o", help="text, or one object of JSON.")] = Form.TEXT,
) -> None:
    """Show what a table is: its files, what each commit did, what is waiting, what is in quarantine."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.table.look import look
        from lakestream.table.text import as_text

        report = look(target_of(path, file, writer), limit)
        if output is Form.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
        else:
            typer.echo(as_text(report, datetime.now(UTC)), nl=False)


@table_app.command()
def compact(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None, yes: Yes = False) -> None:
    """Have the writer's driver merge log files into base files now."""
    from lakestream.log import Work

    _ask(path, file, writer, Work.COMPACTION, yes=yes)


@table_app.command()
def cluster(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None, yes: Yes = False) -> None:
    """Have the writer's driver merge small files of a table of inserts now."""
    from lakestream.log import Work

    _ask(path, file, writer, Work.CLUSTERING, yes=yes)


@table_app.command()
def clean(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None, yes: Yes = False) -> None:
    """Have the writer's driver delete files that were replaced long enough ago now."""
    from lakestream.log import Work

    _ask(path, file, writer, Work.CLEANING, yes=yes)


@savepoint_app.command("create")
def create_savepoint(
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    comment: Annotated[str, typer.Option(help="Why, for whoever finds the savepoint.")] = "",
    yes: Yes = False,
) -> None:
    """Have the writer's driver keep the files of the newest commit, until the savepoint is deleted."""
    from lakestream.log import Work

    _ask(path, file, writer, Work.SAVEPOINT, yes=yes, comment=comment)


@savepoint_app.command("delete")
def delete_savepoint(
    instant: Annotated[str, typer.Argument(help="Of the savepoint: `savepoint list`.", show_default=False)],
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    yes: Yes = False,
) -> None:
    """Have the writer's driver delete a savepoint."""
    from lakestream.log import Work

    _ask(path, file, writer, Work.SAVEPOINT_DELETION, yes=yes, instant=instant)


@savepoint_app.command("list")
def list_savepoints(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """List the savepoints, oldest first: instant, when it was made, comment."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.query.history import show as shown
        from lakestream.query.hudi_folder import HudiFolder
        from lakestream.table.report import savepoints_of

        for one in savepoints_of(HudiFolder.look(target_of(path, file, writer).table)):
            made = "" if one.completed_at is None else shown(one.completed_at)
            typer.echo(printable(f"{one.instant}  {made}  {one.comment}".rstrip()))


@table_app.command()
def restore(
    to: Annotated[
        str, typer.Option(help="The table as it was: an instant, or a time as '10 minutes ago'.", show_default=False)
    ],
    path: TablePath = None,
    file: OptionalFile = None,
    writer: OptionalWriter = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Read nothing again: what came since stays out of the table.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Have the writer's driver take the table back to one of its commits, and read again from there."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.log import Work
        from lakestream.query.question import moment_of
        from lakestream.settings import definition
        from lakestream.table.restore import plan_restore
        from lakestream.table.services import ask

        (target, document), now = described(path, file, writer), datetime.now(UTC)
        known = None
        if document is not None and writer is not None:
            known = definition(document, document.writer(writer))
        plan = plan_restore(target, moment_of("--to", to, now), known, now, rereads=not leave_out)
        for line in plan.told:
            typer.echo(line)
        _require_yes(yes=yes)
        request = ask(target.required_log(), Work.RESTORE, now, instant=plan.instant, back=plan.back)
        typer.echo(
            f"request {request.number}: the writer's driver does it between two batches, the one that runs within ten "
            "seconds of its next batch, else the next one that is started; `lakestream table` tells what came of it"
        )


@table_app.command()
def cancel(path: TablePath = None, file: OptionalFile = None, writer: OptionalWriter = None) -> None:
    """Take back the request that waits, unless the writer's driver has begun it."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.table.services import cancel as take_back

        request = take_back(target_of(path, file, writer).required_log(), datetime.now(UTC))
        typer.echo(f"request {request.number} ({request.work}) is cancelled: no driver carries it out")


def _merged_below(document: LakeStream | None, writer: str | None) -> int | None:
    """Bytes below which the document has clustering merge a file; None: it does not say, or there is none."""
    if document is None or writer is None:
        return None
    hudi = document.writer(writer).hudi
    return None if hudi is None or hudi.clustering is None else merged_below(hudi.clustering.target_file_size)


def _require_yes(*, yes: bool) -> None:
    if not yes:
        typer.echo("nothing was done: --yes asks the writer's driver for it", err=True)
        raise typer.Exit(PLANNED)


def _ask(
    path: str | None,
    file: Path | None,
    writer: str | None,
    work: Work,
    *,
    yes: bool,
    instant: str = "",
    comment: str = "",
) -> None:
    """Tell what the work comes to; with `yes`, ask the writer's driver for it."""
    log_to_stderr("WARNING")
    with explained():
        from lakestream.log import Work
        from lakestream.table.look import look
        from lakestream.table.services import ask, plan_of

        require_text("--comment", comment)
        target, document = described(path, file, writer)
        limit = _merged_below(document, writer)
        report = look(target, 0) if limit is None else look(target, 0, limit)
        plan = plan_of(work, report, instant, limit)
        if work is Work.CLUSTERING and document is not None and limit is None:
            # As the driver does, which would not do it.
            raise SettingsError("hudi.clustering is not set: batches add to the very files that it would merge")
        typer.echo(printable(plan.told))
        if plan.is_needed:
            _require_yes(yes=yes)
            request = ask(target.required_log(), work, datetime.now(UTC), instant=instant, comment=comment)
            typer.echo(
                f"request {request.number}: the writer's driver does it beside its batches, the one that runs within "
                "ten seconds, else the next one that is started; `lakestream table` tells what came of it"
            )
