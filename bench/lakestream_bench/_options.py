"""What options of our commands have in common."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import typer
import yaml

FIT = (
    "What batches cost, as measured on your machine: the JSON that `python -m lakestream_bench batch_times` writes "
    "(build/bench/batch_times.json: a line through many batches), or `ingest` (build/bench/ingest.json: a line through "
    "two points). Default: an `ingest` that comes with this package."
)
"""Help of the option `--fit`."""


def require_known(what: str, names: Collection[str], known: Collection[str]) -> None:
    """Check that names are among those that there are.

    Raises:
        typer.BadParameter: names those that are not, and all that there are.
    """
    if unknown := set(names) - set(known):
        raise typer.BadParameter(f"there is no {what} {', '.join(sorted(unknown))}; choose from: {', '.join(known)}")


def whole(least: int = 1) -> Callable[[str], int]:
    """A whole number from `least` on, of an option of argparse: none that makes no sense is found out in the end."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"give a whole number from {least} on, got {text}")
        return int(text)

    return number


def above_zero(text: str) -> float:
    """A time, of an option of argparse; likewise."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"give a number above zero, got {text}")
    return number


def hudi_fields(text: str) -> dict[str, Any]:
    """Fields of a document's `hudi`, of an option of argparse, as a mapping in YAML."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no YAML: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no mapping, as in 'cleaning: {{retainHours: 0.1}}'")
    return found


def out_file(text: str) -> Path:
    """A file for figures, of an option of argparse: whether it can be written shows before hours are measured.

    Its folder is made.

    Raises:
        argparse.ArgumentTypeError: it cannot be written.
    """
    out = Path(text)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        is_new = not out.exists()
        # What it has stays until there are other figures, and without any there is no file.
        out.open("ab").close()
        if is_new:
            out.unlink()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{out} cannot be written: {error.filename}: {error.strerror}") from error
    return out
