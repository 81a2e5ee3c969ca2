"""The watch, driven by a scripted clock: what it calls, when, and how often."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from obstore.store import MemoryStore

from lakestream.errors import FencedError, LakeStreamError
from lakestream.log import Fence, FenceSettings, FenceWatch, ObstoreLogStore
from lakestream.log.fence import take_epoch
from lakestream.storage import StorageUnavailableError
from lakestream.testing.logs import EPOCH_TIME

SETTINGS = FenceSettings(interval=timedelta(seconds=2), patience=timedelta(seconds=30))


@dataclass
class Script:
    """Time as the watch sees it: each wait moves it on, and lets something happen."""

    seconds: float = 0.0
    at: dict[float, Callable[[], object]] = field(default_factory=dict)
    end: float = 100.0

    def clock(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> bool:
        self.seconds += seconds
        self.at.get(self.seconds, lambda: None)()
        return self.seconds >= self.end


@dataclass
class FailingStore(ObstoreLogStore):
    """Memory that can be cut off."""

    error: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(MemoryStore())

    def list(self, folder: str, after: str | None = None) -> list[str]:
        if self.error is not None:
            raise self.error
        return super().list(folder, after)


def watch(store: FailingStore, script: Script) -> list[tuple[float, LakeStreamError]]:
    lost: list[tuple[float, LakeStreamError]] = []
    epoch = take_epoch(store, "a", EPOCH_TIME)
    watch = FenceWatch(
        Fence(store, epoch.number),
        lambda error: lost.append((script.seconds, error)),
        SETTINGS,
        clock=script.clock,
        wait=script.wait,
    )
    watch.run()
    return lost


def test_a_driver_without_successor_is_left_alone() -> None:
    script = Script()
    assert watch(FailingStore(), script) == []
    assert script.seconds == script.end


def test_a_successor_is_noticed_within_the_interval_and_reported_once() -> None:
    store, script = FailingStore(), Script()
    script.at[10.0] = partial(take_epoch, store, "b", EPOCH_TIME)
    ((second, error),) = watch(store, script)
    assert second == 10.0
    assert isinstance(error, FencedError)
    assert "epoch 2 has taken over" in str(error)


def test_a_store_that_fails_for_less_than_the_patience_is_borne() -> None:
    store, script = FailingStore(), Script()
    script.at[10.0] = lambda: setattr(store, "error", StorageUnavailableError("list epochs: timeout"))
    script.at[36.0] = lambda: setattr(store, "error", None)
    assert watch(store, script) == []


def test_a_store_that_fails_for_longer_ends_the_driver_but_may_be_started_again() -> None:
    store, script = FailingStore(), Script()
    script.at[10.0] = lambda: setattr(store, "error", StorageUnavailableError("list epochs: timeout"))
    ((second, error),) = watch(store, script)
    assert second == 38.0  # 30 s after the last look that was answered, at 8
    assert isinstance(error, StorageUnavailableError)
    assert "could not be read for 30 s" in str(error)
    assert "list epochs: timeout" in str(error)


def test_an_unforeseen_error_does_not_end_the_watch_in_silence() -> None:
    store, script = FailingStore(), Script()
    script.at[2.0] = lambda: setattr(store, "error", ZeroDivisionError("a bug"))
    ((_, error),) = watch(store, script)
    assert "a bug" in str(error)


def test_the_thread_ends_with_its_context() -> None:
    store = FailingStore()
    epoch = take_epoch(store, "a", EPOCH_TIME)
    before = threading.active_count()
    with FenceWatch(Fence(store, epoch.number), lambda error: None, SETTINGS):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_the_watch_thread_reports_a_successor() -> None:
    store, reported = FailingStore(), threading.Event()
    errors: list[LakeStreamError] = []

    def on_lost(error: LakeStreamError) -> None:
        errors.append(error)
        reported.set()

    epoch = take_epoch(store, "a", EPOCH_TIME)
    take_epoch(store, "b", EPOCH_TIME)
    with FenceWatch(Fence(store, epoch.number), on_lost, SETTINGS, wait=lambda seconds: False):
        assert reported.wait(timeout=60)
    assert len(errors) == 1
