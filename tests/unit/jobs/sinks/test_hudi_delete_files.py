"""Which deletes are remembered, whatever is cut off and whenever: against a dictionary."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.sinks.hudi.delete_files import Chunk, DeleteFiles, decode_earlier

RETAIN = 60.0


class Killed(BaseException):
    """The driver is gone."""


@dataclass
class Folder:
    """Files and folders in memory, which outlive their drivers. The effect at which one dies is done by half."""

    files: dict[str, bytes] = field(default_factory=dict)
    data: dict[str, dict[str, float]] = field(default_factory=dict)
    until_killed: int = -1
    keeps_all: bool = False
    """Nobody may remove anything."""

    def put(self, name: str, content: bytes) -> None:
        assert name not in self.files
        self.files[name] = content[: len(content) // 2] if self.until_killed == 0 else content
        self._did()

    def get(self, name: str) -> bytes:
        return self.files[name]

    def list(self) -> list[str]:
        return [*self.files, *self.data]

    def delete(self, name: str) -> None:
        if self.keeps_all:
            raise PermissionError(name)
        del self.files[name]
        self._did()

    def clear(self, name: str) -> None:
        if self.keeps_all:
            raise PermissionError(name)
        content = self.data.pop(name)
        if self.until_killed == 0 and len(content) > 1:
            content.popitem()
            self.data[name] = content
        self._did()

    def write(self, name: str, deletes: dict[str, float]) -> int:
        assert name not in self.data
        self.data[name] = deletes if self.until_killed else dict(list(deletes.items())[1:])
        self._did()
        return len(deletes)

    def _did(self) -> None:
        self.until_killed -= 1
        if self.until_killed == -1:
            raise Killed


@dataclass
class Driver:
    """What the guard does with the files in a batch."""

    folder: Folder
    kept: DeleteFiles

    @classmethod
    def started(cls, folder: Folder) -> Driver:
        kept = DeleteFiles(folder)
        kept.load()
        return cls(folder, kept)

    def batch(self, deletes: dict[str, float], now: float) -> None:
        self.kept.expire(now - RETAIN)
        if self.kept.is_scattered:
            known = self.known(now)
            self.kept.merge(lambda name: self.folder.write(name, known))
        if deletes:
            self.kept.remember(lambda name: self.folder.write(name, deletes), now)

    def known(self, now: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for chunk in self.kept.chunks:
            for key, seen in self.folder.data[chunk.name].items():
                found[key] = max(seen, found.get(key, seen))
        return {key: seen for key, seen in found.items() if seen >= now - RETAIN}


def test_files_stay_few_and_forget_in_time() -> None:
    folder = Folder()
    driver = Driver.started(folder)
    for second in range(200):
        driver.batch({f"key-{second}": float(second)}, now=float(second))
        assert len(folder.files) == len(folder.data) <= 18
        assert driver.known(float(second)).keys() == {f"key-{at}" for at in range(max(0, second - 60), second + 1)}
        assert driver.kept.keys <= 61 + 17
    assert Driver.started(folder).known(199.0) == driver.known(199.0)
    driver.batch({}, now=300.0)
    assert (folder.files, folder.data, driver.kept.keys) == ({}, {}, 0)


@given(
    kills=st.lists(st.integers(0, 70), min_size=1, max_size=8),
    quiet=st.sets(st.integers(0, 79)),
    step=st.sampled_from([0.5, 2.0, 10.0]),
)
def test_a_kill_between_any_two_effects_loses_none(kills: list[int], quiet: set[int], step: float) -> None:
    folder = Folder()
    expected: dict[str, float] = {}
    to_come = iter(kills)
    folder.until_killed = next(to_come)
    driver: Driver | None = None
    for batch in range(80):
        now = batch * step
        deletes = {} if batch in quiet else {f"key-{batch % 50}-{number}": now for number in range(3)}
        while True:
            try:
                driver = driver or Driver.started(folder)
                driver.batch(deletes, now)
                break
            except Killed:
                driver = None
                folder.until_killed = next(to_come, -1)
        expected.update(deletes)
        known = driver.known(now)
        assert known == {key: seen for key, seen in expected.items() if seen >= now - RETAIN}


@pytest.mark.parametrize("effect", range(60))
def test_a_merge_that_is_cut_off_loses_none(effect: int) -> None:
    folder = Folder()
    driver = Driver.started(folder)
    for batch in range(17):
        driver.batch({f"{batch}": 0.0, f"other {batch}": 0.0}, now=0.0)
    folder.until_killed = effect
    try:
        driver.batch({}, now=1.0)
        assert effect >= 36, "a merge is a folder and a file, and 17 of each that go"
    except Killed:
        driver = Driver.started(folder)
    assert driver.known(1.0).keys() == {f"{prefix}{batch}" for batch in range(17) for prefix in ("", "other ")}
    assert {f"{chunk.name}.json" for chunk in driver.kept.chunks} == folder.files.keys()
    assert {chunk.name for chunk in driver.kept.chunks} == folder.data.keys()


@pytest.mark.parametrize("merged", [False, True])
def test_a_manifest_that_comes_when_its_data_was_removed_is_none(merged: bool) -> None:
    """A driver dies with the request on its way; its successor finds data that no manifest names."""
    folder = Folder()
    dead = Driver.started(folder)
    dead.batch({"a": 0.0}, 0.0)
    if merged:
        dead.kept.merge(lambda name: folder.write(name, {"a": 0.0}))
    else:
        dead.kept.remember(lambda name: folder.write(name, {"b": 1.0}), 1.0)
    late = max(folder.files)
    content = folder.files.pop(late)
    Driver.started(folder).batch({"a": 0.0, "b": 1.0}, 2.0)
    folder.put(late, content)
    successor = Driver.started(folder)
    assert successor.known(2.0) == {"a": 0.0, "b": 1.0}
    assert late not in folder.files


def test_files_that_cannot_be_removed_stop_nobody() -> None:
    folder = Folder(keeps_all=True)
    driver = Driver.started(folder)
    for second in range(200):
        driver.batch({f"key-{second}": float(second)}, now=float(second))
        assert len(driver.kept.chunks) <= 18
        if second % 50 == 49:
            driver = Driver.started(folder)
            driver.batch({}, now=float(second))
    assert driver.known(199.0).keys() == {f"key-{at}" for at in range(139, 200)}


def test_a_chunk_says_what_is_in_it() -> None:
    folder = Folder()
    driver = Driver.started(folder)
    driver.batch({"a": 12.5, "b": 12.5}, now=12.5)
    (chunk,) = Driver.started(folder).kept.chunks
    assert chunk == Chunk(name=chunk.name, keys=2, newest=12.5, merged=False)


def test_files_of_the_release_before_are_read() -> None:
    content = zlib.compress(orjson.dumps([['{"order_id":"ä"}', -5, 2**60, 1.25], ["b", 7, "2026-01-31", 2.0]]))
    assert decode_earlier(content) == [('{"order_id":"ä"}', 2**60, 1.25), ("b", "2026-01-31", 2.0)]
    assert decode_earlier(content[:10]) == decode_earlier(b"") == []
