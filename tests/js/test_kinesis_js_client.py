"""The AWS SDK for JavaScript v3 against the local Kinesis: runs kinesis.test.js under node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import local_kinesis

FOLDER = Path(__file__).parent
INSTALL_SECONDS = 240
TEST_SECONDS = 120


@pytest.fixture(scope="module")
def sdk() -> None:
    """The packages of package-lock.json; skips where they cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    installed, locked = FOLDER / "node_modules/.package-lock.json", FOLDER / "package-lock.json"
    if installed.is_file() and installed.stat().st_mtime >= locked.stat().st_mtime:
        return
    command = [npm, "ci", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm ci did not end within {INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"npm ci failed: {done.stderr.strip()[-300:]}")


@pytest.mark.usefixtures("sdk")
def test_the_javascript_sdk():
    with local_kinesis(limits=Limits.none()) as server:
        done = subprocess.run(
            ["node", "--test", "kinesis.test.js"],
            cwd=FOLDER,
            env={**os.environ, "KINESIS_ENDPOINT": server.endpoint},
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS,
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 7" in done.stdout
