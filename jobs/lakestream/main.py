"""The `lakestream` command. Other packages add sub-commands through the entry-point group `lakestream.commands`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated

import click
import typer
from lakestream_api import InvalidDocumentError, LakeStream, load_lakestream
from typer.core import TyperGroup

from lakestream.errors import DataLossError, FencedError, LakeStreamError, PermanentError, SettingsError

EXIT_FAILED = 1
"""Something that may pass: start the writer again."""
EXIT_SETTINGS = 2
"""The document asks for something impossible; the same number as for a wrong command line."""
EXIT_PERMANENT = 3
"""Starting again changes nothing until a person acts."""
EXIT_FENCED = 4
"""Another driver has taken over; this one must not be started again."""
EXIT_DATA_LOSS = 5
"""Records were trimmed before they were read."""


class Commands(TyperGroup):
    """Our commands and those of installed packages, which are only imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        plugin = _plugins().get(cmd_name)
        return typer.main.get_command(plugin.load()) if plugin else super().get_command(ctx, cmd_name)


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {found.name: found for found in sorted(entry_points(group="lakestream.commands"))}


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keep a lakehouse fresh from Amazon Kinesis.",
)

File = Annotated[
    Path, typer.Option("--file", "-f", exists=True, dir_okay=False, help="The LakeStream document (YAML).")
]


@app.command()
def ingest(
    file: File,
    writer: Annotated[str, typer.Option(help="Name of the writer to run, one of spec.writers.")],
    until_caught_up: Annotated[bool, typer.Option(help="End once the tip of every shard is reached.")] = False,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Task slots of local Spark. Default: all cores of the machine.")
    ] = None,
    cluster: Annotated[
        bool, typer.Option(help="Take master and class path from spark-submit instead of running Spark here.")
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

    _log_to_stderr()
    with _explained():
        document = _load(file)
        slots = None if cluster else cores or os.cpu_count() or 1
        run(document, writer, RunSettings(slots, until_caught_up, progress_file, metrics_port))


@app.command()
def validate(file: File) -> None:
    """Check a LakeStream document, and say what is wrong with it."""
    with _explained():
        document = _load(file)
    writers = ", ".join(f"{writer.name} ({writer.output.path})" for writer in document.spec.writers)
    typer.echo(f"{file}: LakeStream {document.metadata.name} is valid; writers: {writers}")


@app.command()
def jars() -> None:
    """Fetch the Java libraries that local Spark needs, once, and print their folder."""
    from lakestream.spark.jars import ensure_jars

    _log_to_stderr()
    with _explained():
        typer.echo(ensure_jars())


def _load(file: Path) -> LakeStream:
    return load_lakestream(file.read_text(encoding="utf-8"))


@contextmanager
def _explained() -> Iterator[None]:
    """End with the message alone and a telling exit status; only a bug gets a traceback."""
    try:
        yield
    except InvalidDocumentError as error:
        _fail(str(error), EXIT_SETTINGS)
    except LakeStreamError as error:
        logging.getLogger(__name__).debug("failed", exc_info=True)
        _fail(str(error), _exit_status(error))


def _exit_status(error: LakeStreamError) -> int:
    match error:
        case FencedError():
            return EXIT_FENCED
        case DataLossError():
            return EXIT_DATA_LOSS
        case SettingsError():
            return EXIT_SETTINGS
        case PermanentError():
            return EXIT_PERMANENT
        case _:
            return EXIT_FAILED


def _fail(message: str, status: int) -> None:
    typer.echo(f"lakestream: {message}", err=True)
    raise typer.Exit(status)


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=os.environ.get("LAKESTREAM_LOG_LEVEL", "INFO").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)


if __name__ == "__main__":
    app()
