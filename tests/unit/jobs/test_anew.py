"""A program that begins anew, run as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, sys
from lakestream.anew import batches_go_on, begin_anew, why_begun_anew
from lakestream.stopping import StopSignal

with open(sys.argv[1], "a") as lives:
    lives.write(f"{os.getpid()} {sys.argv[2:]} {why_begun_anew()}\\n")
if "helps" in sys.argv and sum(1 for _ in open(sys.argv[1])) < 3:
    batches_go_on()
stop = StopSignal()
if "asked to end" in sys.argv:
    stop.set()
if "failed" in sys.argv:
    stop.fail()
begin_anew("S3 does not answer", stop)
sys.exit(6)
"""


@pytest.mark.parametrize(("argument", "lives"), [("in vain", 2), ("helps", 3), ("failed", 2), ("asked to end", 1)])
def test_a_process_begins_anew_with_its_arguments_and_again_only_if_that_helped(
    argument: str, lives: int, tmp_path: Path
) -> None:
    told = tmp_path / "lives"
    command = [sys.executable, "-c", _PROGRAM, str(told), argument]
    process = subprocess.Popen(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""})
    assert process.wait() == 6
    first, *others = told.read_text().splitlines()
    assert first == f"{process.pid} {[argument]} "
    assert others == [f"{process.pid} {[argument]} S3 does not answer"] * (lives - 1)
