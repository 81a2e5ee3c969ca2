"""Ctrl-C ends the comparison, although PySpark has a handler of its own, and the JVM is at something."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

from lab.family import alive

DEADLINE = 120.0

COMPARE = """
import signal, sys
from lakestream.main import app
from lakestream_bench.compare import run

def endless(spark, *_):
    print("in hand", flush=True)
    spark.range(10**14).selectExpr("sum(id % 7)").collect()

run.run_trial = endless
# As in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["lakestream", "compare", "--arm", "json", "--rows", "20", "--size", "0.1", "--no-requests", "--out", "."]
app()
"""


def test_ctrl_c_ends_the_comparison_within_a_call_of_the_jvm(tmp_path: Path) -> None:
    """And the trial in hand has not failed: no other one is begun."""
    command = (sys.executable, "-c", COMPARE)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "in hand\n"
            left = psutil.Process(program.pid).children(recursive=True)
            program.send_signal(signal.SIGINT)
            _, told = program.communicate(timeout=DEADLINE)
        finally:
            program.kill()
    assert program.returncode == 128 + signal.SIGINT
    assert alive(left) == []
    assert "failed" not in told
    assert "Traceback" not in told
