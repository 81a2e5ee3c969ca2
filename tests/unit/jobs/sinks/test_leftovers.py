"""Files that earlier attempts at a batch have left are removed beside the batches, and those of the log never."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.model import FileEntry
from lakestream.sinks import leftovers
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.leftovers import Leftovers
from lakestream.storage import LakePath, S3Settings, StorageUnavailableError, StoreSettings
from lakestream.testing.logs import ManualClock

CHECKPOINT = "5e0c11aa-1111-4222-8333-444455556666"
KEPT = (FileEntry("dt=a/b000000000007-00000-5e0c11aa.json.gz", 1, 10, "dt=a"),)
LEFT = ("dt=a/b000000000007-00000-5e0c11aa.json", "dt=b/b000000000007-00001-5e0c11aa.json.gz")
OTHERS = ("dt=a/b000000000008-00000-5e0c11aa.json", "dt=a/b000000000007-00000-ffffffff.json", "notes.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (KEPT[0].path, *LEFT, *OTHERS):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_they_are_removed_once_their_batch_is_committed(folder: Path) -> None:
    left = Leftovers(StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1")))
    left.tend()
    left.expect(BatchRef(7, CHECKPOINT), KEPT)
    assert there(folder) == {KEPT[0].path, *LEFT, *OTHERS}
    left.tend()
    left.close()
    assert there(folder) == {KEPT[0].path, *OTHERS}


def test_a_store_that_is_away_is_asked_again_after_a_minute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailableError("503")

    clock = ManualClock()
    left = Leftovers(StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1")), clock.monotonic)
    left.expect(BatchRef(7, CHECKPOINT), KEPT)
    with monkeypatch.context() as patched:
        patched.setattr(leftovers, "remove", away)
        left.tend()
        left.close()
    for seconds, found in ((59, {KEPT[0].path, *LEFT, *OTHERS}), (1, {KEPT[0].path, *OTHERS})):
        clock.advance(seconds)
        left.tend()
        left.close()
        assert there(folder) == found
