"""A program that begins anew, run as one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, sys
from lakestream import anew
from lakestream.anew import batches_go_on, why_begun_anew
from lakestream.stopping import StopSignal

with open(sys.argv[1], "a") as lives:
    ends = anew.would_end_with().name if why_begun_anew() else ""
    lives.write(f"{os.getpid()} {sys.argv[2:]} {ends} {why_begun_anew()}\\n")
if "helps" in sys.argv and sum(1 for _ in open(sys.argv[1])) < 3:
    batches_go_on()
stop = StopSignal()
if "asked to end" in sys.argv:
    stop.set()
if "failed" in sys.argv:
    stop.fail()
getattr(anew, sys.argv[2])("S3 does not answer", stop)
sys.exit(6)
"""


@pytest.mark.parametrize(("outlast", "status"), [("outlast_outage", "STORAGE"), ("outlast_failure", "FAILED")])
@pytest.mark.parametrize(("argument", "lives"), [("in vain", 2), ("helps", 3), ("failed", 2), ("asked to end", 1)])
def test_a_process_begins_anew_with_its_arguments_and_again_only_if_that_helped(
    argument: str, lives: int, outlast: str, status: str, tmp_path: Path
) -> None:
    told = tmp_path / "lives"
    command = [sys.executable, "-c", _PROGRAM, str(told), outlast, argument]
    process = subprocess.Popen(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""})
    assert process.wait() == 6
    first, *others = told.read_text().splitlines()
    assert first == f"{process.pid} {[outlast, argument]}  "
    assert others == [f"{process.pid} {[outlast, argument]} {status} S3 does not answer"] * (lives - 1)


_LONG = """
import sys
from lakestream.anew import outlast_outage, why_begun_anew
from lakestream.stopping import StopSignal

outlast_outage("S3 said \\0 " + "é" * 200_000, StopSignal())
sys.exit(6 if why_begun_anew().startswith("S3 said \\\\x00 éé") else 1)
"""


def test_a_process_begins_anew_whatever_a_server_has_said() -> None:
    """A page of a proxy's on one line is more than a variable of the environment may have."""
    command = [sys.executable, "-c", _LONG]
    assert subprocess.run(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""}, check=False).returncode == 6


_DRIVER = """
import sys
from lakestream.anew import has_taken, outlast_outage, owner_and_epoch
from lakestream.stopping import StopSignal

if "denied at once" in sys.argv:
    outlast_outage("Kinesis does not answer", StopSignal())
owner, had = owner_and_epoch()
with open(sys.argv[1], "a") as lives:
    lives.write(f"{owner} {had}\\n")
has_taken(had + 7)
outlast_outage("S3 does not answer", StopSignal())
"""


def test_who_begins_anew_is_the_driver_that_it_was_and_who_is_started_a_new_one(tmp_path: Path) -> None:
    told = tmp_path / "lives"
    for _ in range(2):
        command = [sys.executable, "-c", _DRIVER, str(told)]
        assert subprocess.run(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""}, check=False).returncode == 0
    owners, epochs = zip(*(line.split() for line in told.read_text().splitlines()), strict=True)
    assert epochs == ("0", "7") * 2
    assert owners[0] == owners[1] != owners[2] == owners[3]


def test_a_driver_may_begin_anew_before_it_is_anyone(tmp_path: Path) -> None:
    told = tmp_path / "lives"
    command = [sys.executable, "-c", _DRIVER, str(told), "denied at once"]
    assert subprocess.run(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""}, check=False).returncode == 0
    (only,) = told.read_text().splitlines()
    assert re.fullmatch(r"\w+ 0", only)


_DENIED = """
import sys, time
from datetime import timedelta
from lakestream import anew
from lakestream.errors import AccessDeniedError
from lakestream.stopping import StopSignal

anew.DENIED_FOR, anew.PAUSE = timedelta(seconds=0.9), timedelta(seconds=0.3)
stop = StopSignal()
if "asked to end" in sys.argv:
    stop.set()
began = time.monotonic()
anew.pause(stop)
paused = time.monotonic() - began
with open(sys.argv[1], "a") as lives:
    lives.write(f"{anew.why_begun_anew()}|{paused >= 0.3}|{anew.would_end_with().name}\\n")
if "allowed later" in sys.argv and sum(1 for _ in open(sys.argv[1])) == 2:
    anew.batches_go_on()
    assert not anew.why_begun_anew()
    sys.exit(0)
anew.outlast_denial(AccessDeniedError("s3a://lake/x: 403."), stop)
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("argument", "status", "least", "most"),
    [("denied", 3, 2, 4), ("allowed later", 0, 2, 2), ("asked to end", 3, 1, 1)],
)
def test_who_is_denied_something_asks_again_for_a_while_with_pauses(
    argument: str, status: int, least: int, most: int, tmp_path: Path
) -> None:
    told = tmp_path / "lives"
    command = [sys.executable, "-c", _DENIED, str(told), argument]
    process = subprocess.run(
        command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""}, stderr=subprocess.PIPE, text=True, check=False
    )
    assert process.returncode == status, process.stderr
    first, *others = told.read_text().splitlines()
    assert first == "|False|STORAGE"
    assert set(others) <= {"s3a://lake/x: 403.|True|PERMANENT"}
    assert least <= 1 + len(others) <= most


_ASKED = """
import logging, signal, sys
from lakestream.anew import outlast_outage
from lakestream.stopping import StopSignal, stop_on_signals

stop = StopSignal()
with stop_on_signals(stop), open(sys.argv[1], "a") as lives:
    lives.write(f"{stop.is_set()} {stop.is_asked}\\n")
    lives.flush()
    if "asked" in sys.argv:  # by the last that is done before the other program is there
        logging.shutdown = lambda: signal.raise_signal(signal.SIGTERM)
    outlast_outage("S3 does not answer", stop)
"""


@pytest.mark.parametrize("argument", ["asked", "left alone"])
def test_who_is_asked_to_end_while_it_begins_anew_knows_of_it_afterwards(argument: str, tmp_path: Path) -> None:
    told = tmp_path / "lives"
    command = [sys.executable, "-c", _ASKED, str(told), argument]
    assert subprocess.run(command, env={**os.environ, "LAKESTREAM_BEGUN_ANEW": ""}, check=False).returncode == 0
    is_asked = argument == "asked"
    assert told.read_text().splitlines() == ["False False", f"{is_asked} {is_asked}"]
