"""`make chaos` on a short schedule: resharding, a driver that freezes under its successor, an edited schema, a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import chaos

HERE = Path(__file__).parent
PYTHONPATH = os.pathsep.join(map(str, (HERE.parent / "servers", HERE)))


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_nothing_is_lost_doubled_or_altered_in_a_little_chaos(tmp_path: Path) -> None:
    # A process of its own, as it has signals and a reaper of its own.
    command = (sys.executable, "-m", chaos.__name__, "--replay", HERE / "short", "--out", tmp_path)
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads((tmp_path / "replay-short.json").read_text())["totals"]
    # It did what it was to do, and there was something to lose.
    assert (totals["kills"], totals["freezes"], totals["changes"], totals["faults"]) == (1, 1, 1, 1)
    assert totals["records"] > 300
    assert totals["quarantined"] > 5
