"""`lakestream simulate` and `lakestream compare`: what cannot be done is said at once, and not when all is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lakestream_bench.compare.cli import app as compare
from lakestream_bench.simulation.cli import app as simulate


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Not a folder, so that nobody can write below it, whatever their rights."""
    made = tmp_path / "file"
    made.touch()
    return made


def said(result: Result) -> str:
    """Without its frame and its breaks of lines."""
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("option", ["--html", "--out"])
def test_a_place_that_a_simulation_cannot_write_to_is_told_first(option: str, file: Path) -> None:
    result = CliRunner().invoke(simulate, [option, str(file / "x")])
    assert "cannot be written: Not a directory" in said(result)
    assert result.exit_code == 2


def test_a_writer_that_there_is_not_is_told_with_those_that_there_are() -> None:
    result = CliRunner().invoke(simulate, ["--writer", "hudi"])
    assert "there is no writer hudi; choose from: json, cow, mor" in said(result)
    assert result.exit_code == 2


def test_a_folder_that_a_comparison_cannot_write_to_is_told_first(file: Path) -> None:
    result = CliRunner().invoke(compare, ["--out", str(file / "x")])
    assert "cannot be written to: Not a directory" in said(result)
    assert result.exit_code == 2
