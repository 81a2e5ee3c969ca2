"""The `lakestream-operator` command."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from lakestream_operator import logs
from lakestream_operator.errors import OperatorError
from lakestream_operator.settings import load_settings

_LEVELS = 12_000
"""Of calls, with which Python counts the levels of JSON: the API server takes objects of 10,000, and one that could not
be read would end the watches of all. The stack has room for so many, as a test with one of 9,990 shows."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keep LakeStreams on Kubernetes as they should be.",
)


@app.callback()
def main() -> None:
    """One command, and room for others."""


@app.command()
def run(
    config: Annotated[Path, typer.Option(help="The settings file (YAML).")],
) -> None:
    """Look after LakeStreams until SIGTERM."""
    from lakestream_operator.controller import run_controller  # kopf takes a while to import

    sys.setrecursionlimit(_LEVELS)
    try:
        settings = load_settings(config)
        logs.configure(settings.log.level)
        asyncio.run(run_controller(settings))
    except OperatorError as error:
        logging.getLogger(__name__).error("%s", error)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app()
