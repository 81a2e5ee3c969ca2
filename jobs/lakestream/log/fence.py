"""Epochs: which driver owns the checkpoint, and how one that was replaced finds out.

Every start takes the next epoch by put-if-absent. A driver is fenced from the moment a higher
epoch exists. That alone keeps the log right, since commits are put-if-absent too. It does not keep
a *sink* right: Hudi completes a commit by writing to its own timeline, and nothing there asks whether
the process may still do so. So two timed rules go with it:

- A driver looks for a higher epoch every `interval`, and stops its Spark jobs when there is one.
- A driver whose predecessor did not close its epoch writes to no sink until 2 × `interval` after it
  took its own: one to be noticed by the predecessor, one to stop.

A process that is frozen for longer than that in the middle of Hudi's commit, or a request that is as
long on its way, keeps to no rule: what it does is undone (`sinks/hudi/rollbacks.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from lakestream.errors import FencedError, LakeStreamError
from lakestream.log.layout import EPOCHS, closed_key, epoch_key, number_of
from lakestream.log.store import LogStore, claim
from lakestream.model.codec import encode, time_to_json
from lakestream.storage import StorageUnavailableError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FenceSettings:
    """The timed rules. All drivers of one checkpoint must have the same."""

    interval: timedelta = timedelta(seconds=2)
    """Between two looks for a higher epoch. Each is one LIST request: 43,200 a day at 2 s."""
    patience: timedelta = timedelta(seconds=30)
    """A driver that could not look for this long stops: its successor may be writing already.
    Kubernetes replaces the pod of a lost node after 340 s, so this is early enough."""

    @property
    def wait(self) -> timedelta:
        """From taking an epoch to the first write, unless the predecessor has closed."""
        return 2 * self.interval


@dataclass(frozen=True, slots=True)
class Epoch:
    """A start of a driver."""

    number: int
    """From 1."""
    previous_closed: bool
    """No earlier driver can still be writing: the last one said so when it ended, or there was none."""
    keys: tuple[str, ...]
    """What is in `epochs/`, this one included."""


def take_epoch(store: LogStore, owner: str, now: datetime) -> Epoch:
    """Take the next epoch; of several drivers that start at once, each gets its own.

    Args:
        store: of the log.
        owner: an id of this start that no other has; tells a lost answer from a lost race.
        now: written down for the reader of the log; nothing is decided by it.
    """
    while True:
        keys = store.list(EPOCHS)
        last = max(map(number_of, keys), default=0)
        key = epoch_key(last + 1)
        body = encode("epoch", {"epoch": last + 1, "owner": owner, "startedAt": time_to_json(now)})
        if claim(store, key, body):
            return Epoch(last + 1, last == 0 or closed_key(last) in keys, (*keys, key))


@dataclass(frozen=True, slots=True)
class Fence:
    """Whether an epoch is still the highest."""

    store: LogStore
    epoch: int

    def check(self) -> None:
        """Raise FencedError if a higher epoch exists. One LIST request, of nothing as a rule.

        A HEAD of the next epoch would be cheaper, but could not see a successor whose own entry has
        expired already.
        """
        higher = self.store.list(EPOCHS, after=epoch_key(self.epoch))
        if higher:
            raise FencedError(
                f"epoch {number_of(higher[-1])} has taken over from this driver's epoch {self.epoch}; "
                "it stops without writing. Run one driver per writer and checkpoint."
            )


class FenceWatch:
    """A thread that looks for a higher epoch, and calls `on_lost` once when the checkpoint may not be ours any more.

    Give it a store of its own, with a `patience` of seconds: the log's may try a request for minutes.
    """

    def __init__(
        self,
        fence: Fence,
        on_lost: Callable[[LakeStreamError], None],
        settings: FenceSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Make a watch; entering it as a context starts the thread.

        Args:
            fence: what is looked at.
            on_lost: called in the watch's thread; must end all writing. Gets a FencedError if there is a
                successor, a StorageUnavailableError if nobody can tell.
            settings: how often, and for how long without an answer.
            clock: seconds.
            wait: waits so many seconds; True ends the watch.
        """
        self._fence = fence
        self._on_lost = on_lost
        self._settings = settings
        self._clock = clock
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._thread = threading.Thread(target=self.run, name="fence-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        # A look that hangs must not hold up the end of the process; the thread is a daemon.
        self._thread.join(timeout=self._settings.interval.total_seconds())

    def run(self) -> None:
        """Watch until stopped or fenced."""
        verified = self._clock()
        while not self._wait(self._settings.interval.total_seconds()):
            asked = self._clock()
            try:
                self._fence.check()
                verified = asked
            except FencedError as error:
                self._on_lost(error)
                return
            except Exception as error:  # noqa: BLE001 - a watch that dies of anything is a driver without a fence
                unseen = self._clock() - verified
                logger.warning("cannot tell for %.1f s whether another driver has taken over: %s", unseen, error)
                if unseen >= self._settings.patience.total_seconds():
                    self._on_lost(
                        StorageUnavailableError(
                            f"the log could not be read for {unseen:.0f} s, and another driver may have taken over; "
                            f"this one (epoch {self._fence.epoch}) stops without writing: {error}"
                        )
                    )
                    return
