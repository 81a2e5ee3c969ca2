"""`lakestream compare` as a user runs it, as small as can be: real tables, both engines, and a second start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = ("--size", "0.1", "--rows", "60", "--repetitions", "1", "--arm", "json", "--arm", "mor")


def _compare(folder: Path) -> str:
    command = (sys.executable, "-m", "lakestream.main", "compare", *SMALL, "--out", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_tables_are_right_and_measured_and_not_measured_twice(tmp_path: Path) -> None:
    _compare(tmp_path)
    (found,) = json.loads((tmp_path / "findings.json").read_text())
    assert [arm["arm"] for arm in found["arms"]] == ["json", "mor"]
    for arm in found["arms"]:
        assert {query["engine"] for query in arm["queries"]} == {"spark", "native"}
        assert arm["measured"]["writes_per_batch"] > 1
    assert all(wrong["is_wrong"] for wrong in found["wrong"])
    assert (tmp_path / "report.html").stat().st_size > 20_000
    assert "2 of 2 trials are there from a run before" in _compare(tmp_path)
