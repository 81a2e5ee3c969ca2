"""That Spark's JVM really maps the archive: one to which it does not apply would be ignored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lakestream.spark.archive import ensure_archive, local_archive

pytestmark = pytest.mark.spark

MAPPED = """
from pathlib import Path
from lakestream.spark.session import SessionSettings, build_session
spark = build_session(SessionSettings("archive", cores=1, hudi=True))
jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
print("mapped:", {line.split()[-1] for line in Path(f"/proc/{jvm}/maps").read_text().splitlines() if ".jsa" in line})
"""


@pytest.mark.timeout(600)
def test_a_session_starts_with_the_archive() -> None:
    ensure_archive()
    done = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, check=True)
    assert f"mapped: {{'{local_archive()}'}}" in done.stdout.splitlines()
