"""Prints how many times as long this machine takes as the one that the budgets of CI are of: `1.31`, say.

    python3.11 .ci/pace.py

The work is the same each time, and has nothing of the project in it, so that no change to it passes for a slow machine:
the modules of Python's own library are compiled, in as many processes as the budgets' machine has processors. Needs
Python alone.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path

PROCESSORS = 2
SECONDS = 1.0
"""What a round takes on the machine of the budgets, with nothing beside it: 0.95 to 1.04 were measured."""
ROUNDS = 3


def compile_all(modules: list[str]) -> float:
    """Compile modules; the seconds that it took."""
    began = time.monotonic()
    for module in modules:
        compile(Path(module).read_bytes(), module, "exec")
    return time.monotonic() - began


def tell(took: Sequence[float]) -> None:
    """The middle one: a stutter is not the machine's pace."""
    sys.stdout.write(f"{statistics.median(took) / SECONDS:.2f}\n")


def main() -> None:
    modules = sorted(str(module) for module in Path(os.__file__).parent.glob("*.py"))
    with Pool(PROCESSORS) as pool:
        tell(pool.map(compile_all, [modules] * PROCESSORS * ROUNDS, chunksize=1))


if __name__ == "__main__":
    main()
