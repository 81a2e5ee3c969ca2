"""Tests of a group run in one process, whatever releases of pytest and of pytest-xdist come together."""

import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[2] / "conftest.py"
TESTS = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(8))
def test_one(number):
    Path(str(number)).write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_tests_of_a_group_run_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"))
    (tmp_path / "test_group.py").write_text(TESTS)
    command = (sys.executable, "-m", "pytest", "-q", "--numprocesses", "2", "--dist", "loadgroup", "--rootdir", ".")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len({(tmp_path / str(number)).read_text() for number in range(8)}) == 1
