"""What all commands share: the document they are given, and how they end."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lakestream.errors import LakeStreamError
from lakestream.exits import Exit, exit_of, leave_message
from lakestream_api import InvalidDocumentError, LakeStream, load_lakestream

File = Annotated[
    Path, typer.Option("--file", "-f", exists=True, dir_okay=False, help="The LakeStream document (YAML).")
]


def load(file: Path) -> LakeStream:
    """Read a document.

    Raises:
        InvalidDocumentError: it is none.
    """
    return load_lakestream(file.read_text(encoding="utf-8"))


@contextmanager
def explained() -> Iterator[None]:
    """End with the message alone and a telling exit status; only a bug gets a traceback."""
    try:
        yield
    except InvalidDocumentError as error:
        _fail(str(error), Exit.SETTINGS)
    except LakeStreamError as error:
        logging.getLogger(__name__).debug("failed", exc_info=True)
        _fail(str(error), exit_of(error))
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        leave_message(f"a bug: {type(error).__name__}: {error}")
        raise


def _fail(message: str, status: Exit) -> None:
    typer.echo(f"lakestream: {message}", err=True)
    leave_message(message)
    raise typer.Exit(status)


def log_to_stderr(default: str = "INFO") -> None:
    """Log from the level on that LAKESTREAM_LOG_LEVEL names."""
    logging.basicConfig(
        stream=sys.stderr,
        level=os.environ.get("LAKESTREAM_LOG_LEVEL", default).upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for chatty in ("botocore", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
