"""The yardstick: what all cores do at once is added up."""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from lakestream_bench import _yardstick


def test_a_core_says_how_many_bytes_it_parses_a_second() -> None:
    command = [sys.executable, "-m", _yardstick.__name__, "0.1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert float(said) > 1e6


def test_all_cores_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Program:
        def __init__(self, command: Sequence[str], **_: object) -> None:
            assert command[1:] == ["-m", "lakestream_bench._yardstick", "2.0"]

        def communicate(self) -> tuple[str, None]:
            return "2500000.0\n", None

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(subprocess, "Popen", Program)
    assert _yardstick.machine_speed() == 7.5
