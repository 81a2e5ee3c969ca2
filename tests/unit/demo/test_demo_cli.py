"""`lakestream demo`: what it says when it could not be carried out."""

from __future__ import annotations

import errno
import shutil
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
