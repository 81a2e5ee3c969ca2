"""What all commands share: the document they are given, and how they end."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from lakestream.errors import LakeStreamError
from lakestream.exits import exit_of, leave_message
from lakestream.logs import as_json
from lakestream.statuses import Exit
from lakestream.texts import printable_lines
from lakestream_api import InvalidDocumentError, LakeStream, Problem, load_lakestream

logger = logging.getLogger(__name__)

File = Annotated[
    Path,
    typer.Option("--file", "-f", dir_okay=False, help="The LakeStream document (YAML); - is the standard input."),
]


def named(file: Path) -> str:
    """What stands for the document in a command that somebody is told to run."""
    return "lakestream.yaml" if file == Path("-") else quote(str(file))


class WithDefault(TyperGroup):
    """Sub-commands, also behind their options, one of which may be left out: then the first argument names none."""

    default: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[0] not in {*self.commands, *ctx.help_option_names} if args else not self.no_args_is_help:
            args = self._with_command(args)
        return super().parse_args(ctx, args)

    def _with_command(self, args: list[str]) -> list[str]:
        params = [param for command in self.commands.values() for param in command.params]
        valued = {name for param in params if not getattr(param, "is_flag", False) for name in param.opts}
        for place, arg in enumerate(args):
            is_value = place > 0 and args[place - 1].startswith("-") and args[place - 1] in valued
            if arg in self.commands and not is_value:
                return [arg, *args[:place], *args[place + 1 :]]
            if arg == "--" or not (is_value or arg.startswith("-")):
                break
        return [self.default, *args]


def buffer_stdout() -> None:
    """Have stdout take all that it is given: without a buffer (PYTHONUNBUFFERED) the system may write a part of it, as
    onto a disk that is filling up, and Python leaves the rest out without an error."""
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding, sys.stdout.errors, line_buffering=True
        )


def load(file: Path) -> LakeStream:
    """Read a document.

    Raises:
        InvalidDocumentError: it is none.
    """
    return load_lakestream(text_of(file))


def text_of(file: Path) -> str:
    """What a file says; `-` is the standard input.

    Raises:
        InvalidDocumentError: it is no text.
    """
    try:
        if file == Path("-"):
            if getattr(sys, "stdin", None) is None:
                raise OSError("stdin is closed")
            return typer.get_text_stream("stdin", "utf-8").read()
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDocumentError([Problem("", f"{file} cannot be read as text: {error}")]) from error


@contextmanager
def explained(*, is_driver: bool = False) -> Iterator[None]:
    """End with the message alone and a telling exit status; only a bug gets a traceback.

    Args:
        is_driver: whether the container ends with the command, whose last word the message is then. One that somebody
            runs beside the driver, by `kubectl exec`, has the same environment, and no say in it.
    """
    last_word = leave_message if is_driver else _unsaid
    try:
        yield
    except InvalidDocumentError as error:
        _fail(str(error), Exit.SETTINGS, last_word)
    except LakeStreamError as error:
        logger.debug("failed", exc_info=True)
        _fail(str(error), exit_of(error), last_word)
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        leave_unwritten()
        if isinstance(error, OSError) and error.strerror and not as_json():
            # The machine's own, as a disk that is full; in a pod, where nobody sees the command, with a traceback.
            _fail(f"{error.strerror}{f': {error.filename}' if error.filename else ''}", Exit.FAILED, last_word)
        last_word(f"a bug: {type(error).__name__}: {error}")
        if not as_json():
            raise
        logger.critical("a bug", exc_info=True)
        raise typer.Exit(Exit.FAILED) from error


def leave_unwritten() -> None:
    """What stdout has refused, Python would try to write once more as it ends, and take another status for it."""
    if (stdout := getattr(sys, "stdout", None)) is None:
        return
    try:
        stdout.flush()
    except OSError:
        with suppress(OSError):
            stdout.close()


def _unsaid(message: str) -> None:
    """The last word of a command that no container ends with."""


def _fail(message: str, status: Exit, last_word: Callable[[str], None]) -> None:
    if as_json():
        logger.error("%s", message)
    else:
        typer.echo(printable_lines(f"lakestream: {message}"), err=True)
    last_word(message)
    raise typer.Exit(status)
