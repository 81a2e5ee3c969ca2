"""In which form the rows of an answer go out, and whether they may. The rows themselves are written by `output`."""

from __future__ import annotations

import sys
from enum import StrEnum

from lakestream.errors import SettingsError
from lakestream.query.question import Engine

SHOWN = 20
"""Rows of a table that people are shown, unless they say how many."""

MOST = 2**31 - 1
"""Rows that a limit may be; Spark knows no higher one."""


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_binary(self) -> bool:
        """Whether it is nothing to print."""
        return self in (Format.PARQUET, Format.ARROW)


def answering(engine: Engine, form: Format | None, *, on_cluster: bool, is_kept: bool) -> Engine:
    """The engine that may answer, given where it is asked and where its answer goes.

    Raises:
        SettingsError: options do not go together.
    """
    if on_cluster and engine is Engine.NATIVE:
        raise SettingsError("--cluster has Spark answer: leave --engine native out")
    if is_kept and engine is not Engine.SPARK and not on_cluster:
        raise SettingsError("--to is written by Spark: add --engine spark (or --cluster); without it use -o and > FILE")
    if is_kept and form not in (None, Format.PARQUET):
        raise SettingsError(f"--to writes Parquet: leave -o {form} out")
    return Engine.SPARK if on_cluster else engine


def require_stdout(form: Format) -> None:
    """Check that there is a stdout, and that it is no terminal where rows are nothing to print.

    Raises:
        SettingsError: it is one, or there is none.
    """
    if getattr(sys, "stdout", None) is None:
        raise SettingsError("stdout is closed: redirect it to a file, or to /dev/null, but leave it open")
    if form.is_binary and sys.stdout.isatty():
        raise SettingsError(f"-o {form.value} is nothing to print: redirect it into a file")
