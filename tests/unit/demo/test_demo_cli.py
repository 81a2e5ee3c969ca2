"""`lakestream demo`: what it says when it could not be carried out."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from lakestream_demo import cli
from lakestream_demo.errors import ChildFailedError

FULL = OSError(errno.ENOSPC, "No space left on device", "result.json")


@pytest.mark.parametrize("error", [FULL, ChildFailedError("hudi ended with status 1", "Look at memory first.")])
def test_a_full_disk_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "run_demo", fails)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    result = CliRunner().invoke(cli.app, ["--out", str(tmp_path)])

    assert result.exit_code == cli.EXIT_BROKEN
    assert str(error) in result.output
    assert f"The disk of {tmp_path} is full" in result.output
    # What a child said of it is cut off with its log.
    assert "memory" not in result.output


def test_other_failures_have_their_own_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ChildFailedError("hudi ended with status 1", "Look at memory first.")

    monkeypatch.setattr(cli, "run_demo", fails)
    result = CliRunner().invoke(cli.app, ["--out", str(tmp_path)])

    assert "Look at memory first." in result.output
    assert "full" not in result.output


def test_a_full_disk_for_the_output_is_told_on_the_other_stream(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakestream.main", "demo", "--out", str(tmp_path / "demo")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == cli.EXIT_BROKEN
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
