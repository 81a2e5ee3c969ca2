"""What a benchmark found, as JSON, with the machine that it ran on."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Figures = TypeVar("Figures")


def load_figures(file: Path, figures: type[Figures], benchmark: str) -> Figures | None:
    """What a benchmark that has a part in a report wrote; None: it was not run.

    Args:
        file: that it writes.
        figures: the dataclass of what is in it.
        benchmark: the module to run for it.

    Raises:
        ValueError: the file is something else; the message names it.
    """
    if not file.exists():
        return None
    try:
        return TypeAdapter(figures).validate_json(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file}: not written by `python -m {benchmark}`; remove it: {error}") from error


def write_figures(out: Path, benchmark: str, figures: "Sequence[DataclassInstance]") -> None:
    """Write the figures of one benchmark."""
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    result = {"benchmark": benchmark, "machine": machine, "figures": [asdict(figure) for figure in figures]}
    out.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
