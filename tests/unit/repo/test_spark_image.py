"""What the steps of the Spark image's build import is there by then: they have a few of our modules, and no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "images" / "spark" / "Dockerfile").read_text().replace("\\\n", " ")


def steps() -> list[tuple[str, list[tuple[str, str]]]]:
    """Each of our modules that is run, and what has been copied by then: files, and the folder that they go to."""
    copied: list[tuple[str, str]] = []
    found = []
    for line in DOCKERFILE.splitlines():
        if line.startswith("COPY jobs/lakestream/"):
            *files, folder = line.split()[1:]
            copied += [(file, folder.removeprefix("/build/")) for file in files]
        elif run := re.search(r"^RUN .*PYTHONPATH=/build.* python -m (\S+)$", line):
            found.append((run[1], copied.copy()))
    return found


@pytest.mark.parametrize(("module", "copied"), steps(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_step_finds_what_it_imports(module: str, copied: list[tuple[str, str]], tmp_path: Path) -> None:
    for file, folder in copied:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / folder)
    # All that was copied, for a step may run another one of its modules in a process of its own.
    others = [
        file.removeprefix("jobs/").removesuffix(".py").replace("/", ".") for file, _ in copied if file.endswith(".py")
    ]
    code = f"import {', '.join(others)}, {module} as found; print(found.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(tmp_path))


def test_both_steps_are_known() -> None:
    assert [module for module, _ in steps()] == ["lakestream.spark.jars", "lakestream.spark.archive"]
