"""The watch, driven by a scripted clock: what it calls, when, and how often."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import pytest
from obstore.store import MemoryStore

from lakestream.errors import CheckpointGoneError, FencedError, LakeStreamError, SinkError
from lakestream.log import Fence, FenceSettings, FenceWatch, ObstoreLogStore
from lakestream.log.fence import take_epoch
from lakestream.storage import ObjectNotFoundError, StorageDeniedError, StorageUnavailableError
from lakestream.testing.logs import EPOCH_TIME

SETTINGS = FenceSettings(interval=timedelta(seconds=2), patience=timedelta(seconds=10))


@dataclass
class Script:
    """Time as the watch sees it: each wait moves it on, and lets happen what is due, in its order."""

    seconds: float = 0.0
    at: dict[float, Callable[[], object]] = field(default_factory=dict)
    end: float = 100.0
    frozen: float = 0.0
    """Seconds that the next wait takes longer than it was asked to."""

    def clock(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> bool:
        until = min(self.seconds + seconds, self.end)
        while due := [time for time in self.at if time <= until]:
            self.seconds = min(due)
            self.at.pop(self.seconds)()
        self.seconds, self.frozen = until + self.frozen, 0.0
        return self.seconds >= self.end


@dataclass
class FailingStore(ObstoreLogStore):
    """Memory that can be cut off."""

    error: Exception | None = None

    memory: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        super().__init__(self.memory)

    def list(self, folder: str, after: str | None = None) -> list[str]:
        self._answer()
        return super().list(folder, after)

    def get(self, key: str) -> bytes:
        self._answer()
        return super().get(key)

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class SlowStore(ObstoreLogStore):
    """Memory whose answers, two to a look, take three seconds each to come."""

    script: Script
    memory: MemoryStore

    def __post_init__(self) -> None:
        super().__init__(self.memory)

    def get(self, key: str) -> bytes:
        self.script.seconds += 3
        return super().get(key)


def watch(store: FailingStore, script: Script, *, looks: bool = True) -> list[tuple[float, LakeStreamError]]:
    lost: list[tuple[float, LakeStreamError]] = []
    epoch = take_epoch(store, "a", EPOCH_TIME)
    watch = FenceWatch(
        Fence(store, epoch.number, epoch.owner),
        lambda error: lost.append((script.seconds, error)),
        SETTINGS,
        clock=script.clock,
        wait=script.wait,
    )
    # As in the thread, where what happens in the meantime comes first.
    for second in range(2, int(script.end), 2) if looks else ():
        first = script.at.get(second, lambda: None)
        script.at[second] = partial(lambda first: (first(), watch.look()), first)
    watch.keep_time()
    return lost


def test_a_driver_without_successor_is_left_alone() -> None:
    script = Script()
    assert watch(FailingStore(), script) == []
    assert script.seconds == script.end


def test_a_successor_is_noticed_by_the_next_look_and_reported_once() -> None:
    store, script = FailingStore(), Script()
    script.at[9] = partial(take_epoch, store, "b", EPOCH_TIME)
    ((second, error),) = watch(store, script)
    assert second == 10
    assert isinstance(error, FencedError)
    assert "epoch 2 has taken over" in str(error)


def test_a_checkpoint_that_is_gone_is_noticed_by_the_next_look() -> None:
    store, script = FailingStore(), Script()
    script.at[9] = lambda: store.delete(store.list("epochs"))
    ((second, error),) = watch(store, script)
    assert second == 10
    assert isinstance(error, CheckpointGoneError)
    assert "epochs/000000000001.json, which it wrote, is gone" in str(error)


def test_a_checkpoint_that_was_emptied_and_begun_anew_between_two_looks_is_noticed() -> None:
    store, script = FailingStore(), Script()

    def begin_anew() -> None:
        store.delete(store.list("epochs"))
        assert take_epoch(store, "b", EPOCH_TIME).number == 1

    script.at[9] = begin_anew
    ((second, error),) = watch(store, script)
    assert second == 10
    assert isinstance(error, CheckpointGoneError)
    assert "epochs/000000000001.json, which it wrote, is another driver's" in str(error)


def test_successors_whose_first_has_expired_are_noticed() -> None:
    store, script = FailingStore(), Script()

    def succeed() -> None:
        for owner in "bcd":
            take_epoch(store, owner, EPOCH_TIME)
        store.delete(store.list("epochs")[:2])

    script.at[9] = succeed
    ((_, error),) = watch(store, script)
    assert isinstance(error, FencedError)
    assert "epoch 4 has taken over" in str(error)


def test_a_look_costs_no_list_unless_absent_objects_are_denied() -> None:
    class Counting(FailingStore):
        def list(self, folder: str, after: str | None = None) -> list[str]:
            lists.append(folder)
            return super().list(folder, after)

    class Denying(Counting):
        def get(self, key: str) -> bytes:
            try:
                return super().get(key)
            except ObjectNotFoundError as error:
                raise StorageDeniedError("403") from error

    for store, at_looks in ((Counting(), 0), (Denying(), 1)):
        lists: list[str] = []
        epoch = take_epoch(store, "a", EPOCH_TIME)
        lists.clear()
        fence = Fence(store, epoch.number, epoch.owner)
        fence.glance()
        assert len(lists) == at_looks
        take_epoch(store, "b", EPOCH_TIME)
        with pytest.raises(FencedError):
            fence.glance()


def test_a_look_counts_from_when_it_was_begun() -> None:
    """What it saw may be as old as that: the answer was six seconds on its way."""
    store, script = FailingStore(), Script()
    epoch = take_epoch(store, "a", EPOCH_TIME)
    lost: list[float] = []
    watch = FenceWatch(
        Fence(SlowStore(script, store.memory), epoch.number, epoch.owner),
        lambda error: lost.append(script.seconds),
        SETTINGS,
        clock=script.clock,
        wait=script.wait,
    )
    script.at[8] = watch.look
    watch.keep_time()
    assert lost == [8 + 10]


def test_a_store_that_fails_for_less_than_the_patience_is_borne() -> None:
    store, script = FailingStore(), Script()
    script.at[9] = lambda: setattr(store, "error", StorageUnavailableError("list epochs: timeout"))
    script.at[15] = lambda: setattr(store, "error", None)
    assert watch(store, script) == []


def test_a_store_that_fails_for_longer_ends_the_driver_but_may_be_started_again() -> None:
    store, script = FailingStore(), Script()
    script.at[9] = lambda: setattr(store, "error", StorageUnavailableError("list epochs: timeout"))
    ((second, error),) = watch(store, script)
    assert second == 18  # 10 s after the last look that was answered
    assert isinstance(error, StorageUnavailableError)
    assert "could not be read for 10 s" in str(error)
    assert "list epochs: timeout" in str(error)


def test_a_look_that_hangs_ends_the_driver_in_time() -> None:
    script = Script()
    ((second, error),) = watch(FailingStore(), script, looks=False)
    assert second == 10
    assert "no look was answered" in str(error)


def test_a_process_that_stood_still_ends_and_says_so() -> None:
    script = Script(frozen=40)
    ((second, error),) = watch(FailingStore(), script, looks=False)
    assert second == 50
    assert type(error) is LakeStreamError, "nothing is wrong with the storage"
    assert "stood still for up to 50 s" in str(error)


@pytest.mark.parametrize("taken_at", range(1, 24))
def test_whatever_a_driver_can_see_it_ends_before_its_successor_writes(taken_at: int) -> None:
    for cut_off_at in range(1, 24):
        store, script = FailingStore(), Script()
        script.at[taken_at] = partial(take_epoch, ObstoreLogStore(store.memory), "b", EPOCH_TIME)
        cut = StorageUnavailableError("list epochs: timeout")
        script.at[cut_off_at + 0.5] = partial(setattr, store, "error", cut)
        ((second, _),) = watch(store, script)
        # What it leaves is for the kill, and for executors to notice.
        assert second + SETTINGS.dying.total_seconds() <= taken_at + SETTINGS.wait.total_seconds()


def test_an_unforeseen_error_does_not_end_the_watch_in_silence() -> None:
    store, script = FailingStore(), Script()
    script.at[1] = lambda: setattr(store, "error", ZeroDivisionError("a bug"))
    ((_, error),) = watch(store, script)
    assert "a bug" in str(error)


@pytest.mark.parametrize("is_away", [True, False])
def test_a_sink_that_fails_while_the_store_is_away_fails_of_that(*, is_away: bool) -> None:
    store = FailingStore()
    epoch = take_epoch(store, "a", EPOCH_TIME)

    def fail() -> None:
        with FenceWatch(Fence(store, epoch.number, epoch.owner), lambda error: None, SETTINGS):
            store.error = StorageUnavailableError("list epochs: timeout") if is_away else None
            raise SinkError("a Spark job failed: UnknownHostException: s3")

    told = "the storage of the checkpoint does not answer: list epochs: timeout. " if is_away else ""
    with pytest.raises(StorageUnavailableError if is_away else SinkError, match=f"^{told}a Spark job failed: Unknown"):
        fail()


def test_the_threads_end_with_its_context() -> None:
    store = FailingStore()
    epoch = take_epoch(store, "a", EPOCH_TIME)
    before = set(threading.enumerate())
    with FenceWatch(Fence(store, epoch.number, epoch.owner), lambda error: None, SETTINGS):
        threads = set(threading.enumerate()) - before
        assert len(threads) == 2
    # The context waits for them for two seconds only.
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_the_watch_thread_reports_a_successor() -> None:
    store, reported = FailingStore(), threading.Event()
    errors: list[LakeStreamError] = []

    def on_lost(error: LakeStreamError) -> None:
        errors.append(error)
        reported.set()

    epoch = take_epoch(store, "a", EPOCH_TIME)
    take_epoch(store, "b", EPOCH_TIME)
    settings = FenceSettings(interval=timedelta(milliseconds=1))
    with FenceWatch(Fence(store, epoch.number, epoch.owner), on_lost, settings):
        assert reported.wait(timeout=60)
    assert len(errors) == 1
