"""`lakestream ledger ship` as the companion of a worker."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream_loadgen.cli import ledger_app
from lakestream_loadgen.ledger.reader import read_ledger
from lakestream_loadgen.ledger.writer import LedgerWriter
from lakestream_loadgen.records import Record

SHIP = (sys.executable, "-m", "lakestream.main", "ledger", "ship")


def test_sigterm_ships_what_is_left_and_ends(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    writer = LedgerWriter(tmp_path / "here", stream="orders", prefix="t-w0")
    with subprocess.Popen([*SHIP, str(tmp_path / "here"), str(kept), "--every", "0.1"]) as shipper:
        while not list(kept.glob("*/*")):
            assert shipper.poll() is None
            time.sleep(0.05)
        writer.sent([Record("t-1", "k", b"data", malformed=False)])
        writer.close()
        shipper.send_signal(signal.SIGTERM)
        assert shipper.wait(120) == 0
    assert read_ledger(str(kept))["event_id"].to_pylist() == ["t-1"]


def test_a_last_look_that_fails_is_told(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*SHIP, str(tmp_path / "here"), str(tmp_path / "nowhere"), "--every", "0.1"], stderr=subprocess.PIPE, text=True
    ) as shipper:
        assert shipper.stderr is not None
        assert "is not a folder; trying again in 0.1 s" in shipper.stderr.readline()
        shipper.send_signal(signal.SIGTERM)
        assert shipper.wait(120) == 1
        assert "nowhere is not a folder" in shipper.stderr.read()


def test_a_ledger_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path / "here" / "t-w0.ledger", tmp_path / "kept"):
        folder.mkdir(parents=True)
    with subprocess.Popen(
        [*SHIP, str(tmp_path / "here"), str(tmp_path / "kept"), "--every", "0.1"], stderr=subprocess.PIPE, text=True
    ) as shipper:
        assert shipper.stderr is not None
        assert "t-w0.ledger cannot be read: Is a directory; trying again in 0.1 s" in shipper.stderr.readline()
        shipper.send_signal(signal.SIGTERM)
        assert shipper.wait(120) == 1
        assert "Traceback" not in shipper.stderr.read()


@pytest.mark.parametrize("target", ["gs://bucket/ledger", "s3://", ""])
def test_where_nothing_can_be_shipped_to_is_refused_at_once(tmp_path: Path, target: str) -> None:
    shipped = CliRunner().invoke(ledger_app, ["ship", str(tmp_path), target])
    assert shipped.exit_code == 2
    assert "give a folder, or an s3:// location" in " ".join(shipped.output.replace("│", " ").split())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [*SHIP, str(tmp_path / "file" / "x"), str(tmp_path)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "cannot be made: Not a directory" in " ".join(ended.stderr.replace("│", " ").split())
