"""Options by which all commands about a table name it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lakestream.command import load
from lakestream.errors import SettingsError
from lakestream.query.target import Target, at_path, of_writer, require_folder
from lakestream.storage import StoreSettings
from lakestream.texts import is_utf8
from lakestream_api import LakeStream

TablePath: TypeAlias = Annotated[
    str | None, typer.Argument(help="Folder or s3:// path of a table, in place of -f.", show_default=False)
]
OptionalFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--file", "-f", dir_okay=False, help="The LakeStream document (YAML); - is the standard input."),
]
OptionalWriter: TypeAlias = Annotated[str | None, typer.Option("--writer", help="Name of a writer of the document.")]


def target_of(path: str | None, file: Path | None, writer: str | None) -> Target:
    """The table that is meant.

    Raises:
        SettingsError, InvalidDocumentError: none, or two; or there is no such table.
    """
    return described(path, file, writer)[0]


def described(path: str | None, file: Path | None, writer: str | None) -> tuple[Target, LakeStream | None]:
    """The table that is meant, and the document that names it, if one does. It is read once: a pipe ends.

    Raises:
        SettingsError, InvalidDocumentError: as `target_of`.
    """
    target, document = _meant(path, file, writer)
    require_folder(target.table)
    return target, document


def log_for_requests(path: str | None, file: Path | None, writer: str | None) -> StoreSettings:
    """Where the driver of the writer of the table that is meant looks for requests; the table of a document may be yet
    to come.

    Raises:
        SettingsError, InvalidDocumentError: as `target_of`; or nobody writes the table.
    """
    return _meant(path, file, writer)[0].log_for_requests()


def _meant(path: str | None, file: Path | None, writer: str | None) -> tuple[Target, LakeStream | None]:
    if path is None and file is None:
        raise SettingsError(
            "give the path of a table, or a document and one of its writers: -f lakestream.yaml --writer NAME"
        )
    if path is not None and file is not None:
        raise SettingsError(f"two tables: {path!r} is taken for the path of one, and -f {file} names another; give one")
    if path is not None:
        if writer is not None:
            raise SettingsError("--writer goes with -f; a path names one table")
        return at_path(path, os.environ), None
    assert file is not None
    document = load(file)
    if writer is None:
        names = ", ".join(one.name for one in document.spec.writers)
        raise SettingsError(f"which table? Give --writer, one of: {names}")
    return of_writer(document, writer, os.environ), document


def log_of(path: str | None, file: Path | None, writer: str | None) -> StoreSettings:
    """The checkpoint of the writer of the table that is meant.

    Raises:
        SettingsError, InvalidDocumentError: as `target_of`; or nobody writes the table.
    """
    return target_of(path, file, writer).required_log()


def require_text(option: str, given: str) -> None:
    """Check that what an option is given is a text: the shell hands on any bytes.

    Raises:
        SettingsError: it is none.
    """
    if not is_utf8(given):
        raise SettingsError(f"{option} is not UTF-8: {given!r}")


def require_extra(*modules: str) -> None:
    """Check that what only some commands need is installed.

    Raises:
        SettingsError: it is not; names the extra that brings it.
    """
    lacking = [name for name in modules if find_spec(name) is None]
    if lacking:
        raise SettingsError(
            f"{', '.join(lacking)} not installed: pip install 'lakestream[query]'; or have Spark answer: --engine spark"
        )
