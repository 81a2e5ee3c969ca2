"""`lakestream load`, up to where Locust takes over."""

from __future__ import annotations

import os
import sys
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from lakestream_loadgen.cli import load_app


@pytest.mark.parametrize(
    ("given", "host"), [(None, "127.0.0.1"), ("", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("*", "*")]
)
def test_the_page_is_for_this_machine_alone_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, given: str | None, host: str
) -> None:
    """It starts load without asking who you are. An empty text, as of a variable that is not set, says nothing."""
    monkeypatch.delenv("LOCUST_WEB_HOST", raising=False)
    if given is not None:
        monkeypatch.setenv("LOCUST_WEB_HOST", given)
    became = Mock(side_effect=SystemExit(0))
    monkeypatch.setattr(os, "execve", became)
    CliRunner().invoke(load_app, ["--users", "5"])
    [(program, arguments, environment)] = [call.args for call in became.call_args_list]
    assert program == sys.executable
    assert arguments[-2:] == ["--users", "5"]
    assert environment["LOCUST_WEB_HOST"] == host
