"""The `lakestream` command, as people call it while drivers live and die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from chaos.world import World

_SECONDS = 600.0
"""What hangs for ever is told. What is slow is not: a command asks a store for three minutes that gives no answers, and
others may take up the machine."""


@dataclass(frozen=True)
class Answer:
    """Of a command."""

    status: int
    said: str
    """To whoever typed it."""


def call(world: World, name: str, arguments: Sequence[str], output: Path | None = None) -> Answer:
    """Call it for the writer of a world.

    Args:
        world: its document is given as it is now.
        name: of the command's files.
        arguments: of the command, but for document and writer.
        output: takes what goes to stdout; None: that is said as well.
    """
    path = world.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(world.document, sort_keys=False))
    [writer] = world.document["spec"]["writers"]
    of_writer = ("--file", str(path), "--writer", writer["name"])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lakestream.main", *arguments, *of_writer],
            env=world.environment(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(1, f"no answer in {_SECONDS:.0f} s")
    if output is not None:
        output.write_bytes(done.stdout)
    said = done.stderr if output is not None else done.stdout + done.stderr
    return Answer(done.returncode, said.decode().strip())
