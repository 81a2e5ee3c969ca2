"""How a driver ends: its status, and what `kubectl describe pod` shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.errors import (
    CheckpointGoneError,
    DataLossError,
    FencedError,
    IdentityMismatchError,
    KinesisAnswerError,
    LakeStreamError,
    SchemaError,
    StreamRecreatedError,
    TableGoneError,
    ThrottledError,
)
from lakestream.exits import exit_of, leave_message
from lakestream.storage import StorageUnavailableError

POD = {"LAKESTREAM_POD": "orders-hudi-driver"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ThrottledError("slow down"), 1),
        (SchemaError("no such type"), 2),
        (IdentityMismatchError("another stream"), 3),
        (StreamRecreatedError("created again"), 7),
        (CheckpointGoneError("emptied"), 8),
        (TableGoneError("deleted"), 9),
        (KinesisAnswerError.of("GetRecords", "Data is None"), 3),
        (FencedError("epoch 6"), 4),
        (DataLossError("trimmed"), 5),
        (StorageUnavailableError("S3 does not answer"), 6),
    ],
)
def test_the_status_says_whether_to_start_again(error: LakeStreamError, status: int) -> None:
    assert exit_of(error) == status


def test_in_a_pod_the_message_is_left_for_the_kubelet(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    leave_message("no such type: nummer", POD, log)
    assert log.read_text() == "no such type: nummer"
    leave_message("é" * 5000, POD, log)
    assert log.stat().st_size == 4096


def test_elsewhere_nothing_is_written(tmp_path: Path) -> None:
    leave_message("no such type", {}, tmp_path / "termination-log")
    assert list(tmp_path.iterdir()) == []


def test_a_message_that_cannot_be_left_is_no_second_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    leave_message("no such type", POD, tmp_path / "missing" / "termination-log")
    assert "termination message could not be written" in caplog.text
