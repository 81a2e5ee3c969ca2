"""The `lakestream` command.

Other packages add sub-commands through the entry-point group `lakestream.commands`: a Typer app each, which is imported
when it is called, or listed. Those of this package are named here, since in the image no package announces its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lakestream.command import File, buffer_stdout, explained, load, text_of
from lakestream.logs import log_to_stderr
from lakestream.statuses import Exit
from lakestream.texts import printable_lines
from lakestream_api import (
    InvalidDocumentError,
    LakeStream,
    Problem,
    __version__,
    advice,
    lakestreams_in,
    load_manifest,
)

_GROUP = "lakestream.commands"
_OURS = {
    "backfill": "lakestream.backfill.cli:backfill_app",
    "quarantine": "lakestream.quarantined.cli:quarantine_app",
    "query": "lakestream.query.cli:query_app",
    "table": "lakestream.table.cli:table_app",
}


class _Commands(TyperGroup):
    """Our commands, and those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_plugins().names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # What packages announce is looked for last: it takes a look into each that is installed.
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        plugins = _ours() if cmd_name in _OURS else _plugins()
        if cmd_name not in plugins.names:
            return None
        command = typer.main.get_command(plugins[cmd_name].load())
        command.name = cmd_name
        return command


def _ours() -> EntryPoints:
    return EntryPoints(EntryPoint(name, app, _GROUP) for name, app in _OURS.items())


def _plugins() -> EntryPoints:
    return EntryPoints([*_ours(), *entry_points(group=_GROUP)])


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keep a lakehouse fresh from Amazon Kinesis.",
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lakestream {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Tell the release, and end.")
    ] = False,
) -> None:
    """Those of no command."""
    if sys.flags.optimize > 1:
        typer.echo(
            "lakestream: Python was told to do without docstrings, which PySpark reads and help is made of: "
            "unset PYTHONOPTIMIZE, or leave out -OO",
            err=True,
        )
        raise typer.Exit(Exit.PERMANENT)
    buffer_stdout()


@app.command()
def ingest(
    # No pipe: a driver that begins anew reads it once more.
    file: Annotated[
        Path, typer.Option("--file", "-f", exists=True, dir_okay=False, help="The LakeStream document (YAML).")
    ],
    writer: Annotated[str, typer.Option(help="Name of the writer to run, one of spec.writers.")],
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End once all that had arrived is committed.")
    ] = False,
    cores: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Task slots of local Spark. Default: all cores of the machine.")
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Take master and class path from spark-submit instead of running Spark here."),
    ] = False,
    progress_file: Annotated[
        Path | None, typer.Option(help="Append the progress of each batch to this file, as a line of JSON.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Serve Prometheus metrics on this port. Default: not at all.")
    ] = None,
) -> None:
    """Run one writer of a LakeStream: read its stream, write its table, exactly once.

    SIGTERM or Ctrl-C ends it after the batch in hand.
    """
    from lakestream.app import RunSettings, run  # Spark's modules take a while to import

    log_to_stderr()
    with explained(is_driver=True):
        document = load(file)
        slots = None if cluster else cores or os.cpu_count() or 1
        run(document, writer, RunSettings(slots, until_caught_up, progress_file, metrics_port))


@app.command()
def validate(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="YAML; - is the standard input. May be given several times.")
    ],
) -> None:
    """Check a LakeStream document, and say what is wrong with it, but for what only Spark can tell.

    Of several documents, or a list as kubectl prints it, each LakeStream is checked, and all else passed over.
    """
    with explained():
        found = _lakestreams_of(files)
        if not found:
            typer.echo("there are no LakeStreams in the list")
            return
        if len(found) == 1:
            _tell_of(load_manifest(found[0]))
        elif [manifest for manifest in found if not _is_valid(manifest)]:
            raise typer.Exit(Exit.SETTINGS)
        typer.echo("Spark, which reads spec.schema and spec.transform, has not been asked: a start does.")


def _lakestreams_of(files: Sequence[Path]) -> list[Mapping[str, Any]]:
    """Raises InvalidDocumentError, which names the file if there are several."""
    found: list[Mapping[str, Any]] = []
    for file in files:
        try:
            found += lakestreams_in(text_of(file))
        except InvalidDocumentError as error:
            if len(files) == 1:
                raise
            raise InvalidDocumentError([Problem("", f"{file}: {problem}") for problem in error.problems]) from error
    return found


def _is_valid(manifest: Mapping[str, Any]) -> bool:
    """Of one among several; tells of it."""
    try:
        _tell_of(load_manifest(manifest))
    except InvalidDocumentError as error:
        name = _name(manifest.get("metadata")) or "one without a name"
        for problem in error.problems:
            typer.echo(printable_lines(f"lakestream: {name}: {problem}"), err=True)
        return False
    return True


def _name(metadata: object) -> str:
    """Namespace and name, as far as they are there."""
    own = metadata if isinstance(metadata, Mapping) else {}
    return "/".join(str(own[part]) for part in ("namespace", "name") if part in own)


def _tell_of(document: LakeStream) -> None:
    writers = ", ".join(f"{writer.name} ({writer.output.path})" for writer in document.spec.writers)
    name = document.metadata.full_name
    typer.echo(f"LakeStream {name} is valid; writers: {writers}")
    for sentence in advice(document):
        typer.echo(f"lakestream: {name}: {sentence}", err=True)


@app.command()
def files(
    file: File,
    writer: Annotated[str, typer.Option(help="Name of a writer, one of spec.writers.")],
    quarantine: Annotated[bool, typer.Option("--quarantine", help="The files of unusable records.")] = False,
) -> None:
    """List the files of committed batches, one a line: those to read while the writer goes on.

    Of files of JSON lines, or with --quarantine of any writer; the files of a Hudi table are known by its timeline.
    """
    from lakestream.listing import list_files

    log_to_stderr("WARNING")
    with explained():
        for path in list_files(load(file), writer, os.environ, quarantine=quarantine):
            typer.echo(path)


@app.command()
def jars() -> None:
    """Fetch the Java libraries that local Spark needs, and make the archive with which it starts fast: both once.

    Prints the folder of the libraries.
    """
    from lakestream.spark.archive import ensure_archive
    from lakestream.spark.jars import ensure_jars

    log_to_stderr()
    with explained():
        typer.echo(ensure_jars())
        ensure_archive()


if __name__ == "__main__":
    app()
