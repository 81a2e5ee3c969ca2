"""The demo itself: a short run, and what is left of one that is ended at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

from lab.family import alive
from lakestream_demo.reaper import TOKEN_VARIABLE
from quick_spark import quick

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

START_SECONDS = 300.0
END_SECONDS = 120.0
ENVIRONMENT = {**os.environ, **quick()}
DEMO = (sys.executable, "-m", "lakestream.main", "demo", "--users", "50", "--events", "500")


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)


@contextmanager
def started(out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        (*DEMO, "--out", str(out), *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def token_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(TOKEN_VARIABLE)
    except psutil.Error:
        return None


def run_of(demo: subprocess.Popen[str]) -> list[psutil.Process]:
    """All processes of a run: also those that have left the family of the demo."""
    children = psutil.Process(demo.pid).children(recursive=True)
    tokens = {token for child in children if (token := token_of(child))}
    assert tokens
    return [*children, *(process for process in psutil.process_iter() if token_of(process) in tokens)]


def has_log(out: Path, name: str) -> Callable[[], bool]:
    log = out / "logs" / f"{name}.log"
    return lambda: log.exists() and log.stat().st_size > 0


def has_batch(out: Path, writer: str) -> Callable[[], bool]:
    progress = out / "progress" / f"{writer}.jsonl"
    return lambda: progress.exists() and progress.stat().st_size > 0


@pytest.mark.parametrize("table", ["mor", pytest.param("cow", marks=pytest.mark.slow)])
def test_a_short_run_passes_its_own_audit(tmp_path: Path, table: str) -> None:
    out = tmp_path / "demo"
    done = subprocess.run(
        (*DEMO, "--out", str(out), "--duration", "6s", "--table", table),
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = orjson.loads((out / "result.json").read_bytes())
    acknowledged = result["load"]["acknowledged"]
    assert result["version"] == 2
    assert result["passed"] is True
    # A busy machine falls short of the load's 3,000.
    assert acknowledged > 100
    hudi, json = result["tables"]
    assert hudi["kind"] == {"mor": "MERGE_ON_READ", "cow": "COPY_ON_WRITE"}[table]
    assert hudi["records"] == json["records"] == acknowledged
    assert 0 < hudi["rows"] < json["rows"] <= acknowledged
    for made in () if "given up after" in done.stdout else result["tables"]:
        # The load is a part of all that came.
        assert 0 < made["freshness_warm"]["records"] < made["freshness_all"]["records"] <= json["rows"]
    assert [bool(query["rows"]) for query in result["queries"]] == [True, True, True]
    assert done.stdout.rstrip().splitlines()[-1].startswith("PASSED")
    assert f"{out}/report.html" in "".join(done.stdout.split())
    assert "PASSED" in (out / "report.html").read_text("utf-8")
    history = orjson.loads((out / "history.json").read_bytes())
    last = history["moments"][-1]
    assert last["records"] == acknowledged
    assert {(one["records"], one["backlog"], one["lag_seconds"]) for one in last["writers"].values()} == {
        (acknowledged, 0, 0.0)
    }
    assert history["load_ended"] - history["load_began"] >= 6


@pytest.mark.parametrize(
    ("number", "reached"),
    [
        (signal.SIGINT, lambda out: has_log(out, "kinesis")),
        (signal.SIGTERM, lambda out: has_log(out, "hudi")),
        pytest.param(signal.SIGINT, lambda out: has_batch(out, "json"), marks=pytest.mark.slow),
        (signal.SIGKILL, lambda out: has_batch(out, "json")),
    ],
    ids=["interrupt-at-start", "terminate-while-spark-starts", "interrupt-under-load", "kill-under-load"],
)
def test_an_ended_run_leaves_no_process(
    tmp_path: Path, number: signal.Signals, reached: Callable[[Path], Callable[[], bool]]
) -> None:
    out = tmp_path / "demo"
    with started(out, "--duration", "300s") as demo:
        until(reached(out), START_SECONDS, "the run to get that far")
        processes = run_of(demo)
        assert alive(processes)
        os.kill(demo.pid, number)
        output, _ = demo.communicate(timeout=END_SECONDS)
        if number is signal.SIGKILL:
            until(lambda: not alive(processes), END_SECONDS, "the end of what a killed demo left")
        else:
            assert demo.returncode == 128 + number, output
            assert f"Stopped by {number.name}; nothing is left running. Logs: {out / 'logs'}" in output
            assert alive(processes) == []


def test_a_child_that_dies_ends_the_run_and_is_shown(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    with started(out, "--duration", "300s") as demo:
        until(has_log(out, "hudi"), START_SECONDS, "the start of Spark")
        processes = run_of(demo)
        kinesis = next(child for child in psutil.Process(demo.pid).children() if "serve" in child.cmdline())
        kinesis.kill()
        output, _ = demo.communicate(timeout=END_SECONDS)
        assert demo.returncode == 3
        assert "kinesis was ended by SIGKILL" in output
        assert "Nothing is left running" in output
        assert alive(processes) == []
