"""What a benchmark found, as JSON, with the machine that it ran on."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def write_figures(out: Path, benchmark: str, figures: "Sequence[DataclassInstance]") -> None:
    """Write the figures of one benchmark."""
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    result = {"benchmark": benchmark, "machine": machine, "figures": [asdict(figure) for figure in figures]}
    out.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
