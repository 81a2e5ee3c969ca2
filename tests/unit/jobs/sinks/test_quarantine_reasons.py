"""Why records are in quarantine, as the driver can tell without reading them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakestream.errors import PermanentError
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.quarantine import COLUMNS, Quarantine, _task_files
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.damage import damaged_at_the_end

REF = BatchRef(batch=12, checkpoint="5e0c11aa-1111-4222-8333-444455556666")


@pytest.fixture
def quarantine(tmp_path: Path) -> Quarantine:
    return Quarantine(StoreSettings(LakePath.parse(str(tmp_path)), S3Settings("eu-west-1")))


def _rejected(*reasons: str | None, bytes_each: int = 10) -> pa.RecordBatch:
    values: dict[str, pa.Array] = {name: pa.array(["x"] * len(reasons)) for name in COLUMNS}
    values["data"] = pa.array([bytes([number % 251]) * bytes_each for number in range(len(reasons))])
    values["reason"] = pa.array(reasons, pa.string())
    return pa.RecordBatch.from_pydict(values)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (_rejected("not JSON"), "not JSON"),
        (_rejected("a", "b", "not JSON" * 50), "not JSON" * 50),
        (_rejected(*["not JSON"] * 20_000, bytes_each=200), "not JSON"),
        (_rejected(None), ""),
    ],
    ids=["one", "one of several", "more than what is read", "none"],
)
def test_a_reason_is_read_from_the_end_of_an_object(
    quarantine: Quarantine, tmp_path: Path, batch: pa.RecordBatch, reason: str
) -> None:
    ((entry, content),) = _task_files(REF, 0, iter([batch]))
    (tmp_path / entry.path).write_bytes(content)
    assert quarantine._reason_in(entry) == reason


def test_an_object_that_cannot_be_read_is_no_error(
    quarantine: Quarantine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ((entry, _),) = _task_files(REF, 0, iter([_rejected("not JSON")]))
    assert quarantine._reason_in(entry) == ""
    (tmp_path / entry.path).write_bytes(b"x" * entry.bytes)
    assert quarantine._reason_in(entry) == ""
    assert caplog.text.count("cannot tell why records") == 2


def test_nor_is_one_that_lacks_a_bit(quarantine: Quarantine, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ((entry, content),) = _task_files(REF, 0, iter([_rejected("not JSON")]))
    for damaged in damaged_at_the_end(bytes(content)):
        (tmp_path / entry.path).write_bytes(damaged)
        assert isinstance(quarantine._reason_in(entry), str)
    assert caplog.text.count("cannot tell why records") > 50


def test_a_damaged_object_of_a_batch_that_is_visible_is_named(quarantine: Quarantine, tmp_path: Path) -> None:
    ((entry, content),) = _task_files(REF, 0, iter([_rejected("not JSON")]))
    (tmp_path / entry.path).write_bytes(content)
    assert [found.rows for found in quarantine.find(REF)] == [1]
    (tmp_path / entry.path).write_bytes(b"x" * entry.bytes)
    with pytest.raises(PermanentError, match=f"{entry.path} under {tmp_path} is no file of the quarantine any more"):
        quarantine.find(REF)
