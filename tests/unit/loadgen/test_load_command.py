"""`lakestream load`, up to where Locust takes over."""

from __future__ import annotations

import os
import sys
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from lakestream_loadgen.cli import load_app


def test_everything_behind_load_is_for_locust(monkeypatch: pytest.MonkeyPatch) -> None:
    became = Mock(side_effect=SystemExit(0))
    monkeypatch.setattr(os, "execv", became)
    CliRunner().invoke(load_app, ["--users", "5"])
    [(program, arguments)] = [call.args for call in became.call_args_list]
    assert program == sys.executable
    assert arguments[1:4] == ["-m", "locust", "-f"]
    assert arguments[-2:] == ["--users", "5"]
