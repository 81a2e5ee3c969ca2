"""Files that earlier attempts at a batch have left are removed beside the batches, and those of the log never."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from lakestream.sinks import leftovers
from lakestream.sinks.leftovers import Leftovers
from lakestream.storage import LakePath, S3Settings, StorageDeniedError, StorageUnavailableError, StoreSettings
from lakestream.testing.logs import ManualClock

CHECKPOINT = "5e0c11aa-1111-4222-8333-444455556666"
KEPT = "dt=a/b000000000007-00000-5e0c11aa.json.gz"
LEFT = ("dt=a/b000000000007-00000-5e0c11aa.json", "dt=b/b000000000007-00001-5e0c11aa-0badcafe.json.gz")
OTHERS = ("dt=a/b000000000008-00000-5e0c11aa.json", "dt=a/b000000000007-00000-ffffffff.json", "notes.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (KEPT, *LEFT, *OTHERS):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a driver waits for two seconds; here for all that is under way."""
    monkeypatch.setattr(leftovers, "_PATIENCE", None)


def leftovers_of(folder: Path, committed: dict[int, frozenset[str]], clock: ManualClock | None = None) -> Leftovers:
    store = StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1"))
    return Leftovers(store, CHECKPOINT, lambda: committed, (clock or ManualClock()).monotonic)


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_they_are_removed_once_their_batch_is_committed(folder: Path) -> None:
    committed: dict[int, frozenset[str]] = {}
    left = leftovers_of(folder, committed)
    left.tend()
    left.close()
    assert there(folder) == {KEPT, *LEFT, *OTHERS}
    committed[7] = frozenset({KEPT})
    left.tend()
    left.close()
    assert there(folder) == {KEPT, *LEFT, *OTHERS}, "nobody has said that there are any"
    left.expect()
    left.tend()
    left.close()
    assert there(folder) == {KEPT, *OTHERS}


@pytest.mark.parametrize("elsewhere", ["_backup", ".trash", "backup", "dt=a/backup"])
def test_what_somebody_has_put_elsewhere_is_his(folder: Path, elsewhere: str) -> None:
    """It may be the only copy of a partition that was moved away."""
    moved = folder / elsewhere / KEPT
    moved.parent.mkdir(parents=True)
    (folder / KEPT).rename(moved)
    left = leftovers_of(folder, {7: frozenset({KEPT})})
    left.tend()
    left.close()
    assert there(folder) == {f"{elsewhere}/{KEPT}", *OTHERS}


def test_those_of_an_earlier_driver_are_removed_at_the_start(folder: Path) -> None:
    left = leftovers_of(folder, {6: frozenset(), 7: frozenset({KEPT})})
    left.tend()
    left.close()
    assert there(folder) == {KEPT, *OTHERS}


def test_a_store_that_is_away_is_asked_again_after_a_minute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailableError("503")

    clock = ManualClock()
    left = leftovers_of(folder, {7: frozenset({KEPT})}, clock)
    with monkeypatch.context() as patched:
        patched.setattr(leftovers, "remove", away)
        left.tend()
        left.close()
    for seconds, found in ((59, {KEPT, *LEFT, *OTHERS}), (1, {KEPT, *OTHERS})):
        clock.advance(seconds)
        left.tend()
        left.close()
        assert there(folder) == found


def test_where_nobody_may_delete_the_folder_is_listed_ever_less_often(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def denied(*_: object) -> None:
        looks.append(clock.monotonic())
        raise StorageDeniedError("403")

    clock = ManualClock()
    left = leftovers_of(folder, {7: frozenset({KEPT})}, clock)
    with monkeypatch.context() as patched:
        patched.setattr(leftovers, "remove", denied)
        for _ in range(6 * 60):
            left.tend()
            left.close()
            clock.advance(60)
    pauses = [after - before for before, after in pairwise(looks)]
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    clock.advance(3600)
    left.tend()
    left.close()
    assert there(folder) == {KEPT, *OTHERS}
