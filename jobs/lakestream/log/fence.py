"""Epochs: which driver owns the checkpoint, and how one that was replaced finds out.

Every start takes the next epoch by put-if-absent. A driver is fenced from the moment a higher
epoch exists. That alone keeps the log right, since commits are put-if-absent too. It does not keep
a *sink* right: Hudi completes a commit by writing to its own timeline, and nothing there asks whether
the process may still do so. So two timed rules go with it:

- A driver looks for a higher epoch every `interval`, and ends at once when there is one. It ends as well
  when its last look that was answered began `patience` ago: from then on it may have a successor.
- A driver whose predecessor did not close its epoch writes to no sink, and undoes nothing there, until
  `patience` + `dying` after it took its own.

A process that is frozen for longer than that in the middle of Hudi's commit, or a request that is as
long on its way, keeps to no rule: what it does is undone (`sinks/hudi/rollbacks.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from lakestream.errors import CheckpointGoneError, FencedError, LakeStreamError, SinkError
from lakestream.log.layout import EPOCHS, closed_key, epoch_key, number_of
from lakestream.log.store import LogStore, claim
from lakestream.model.codec import decode, encode, time_to_json
from lakestream.storage import ObjectNotFoundError, StorageDeniedError, StorageUnavailableError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FenceSettings:
    """The timed rules. All drivers of one checkpoint must have the same."""

    interval: timedelta = timedelta(seconds=2)
    """Between two looks for a higher epoch. Each is two GET requests: 86,400 a day at 2 s."""
    patience: timedelta = timedelta(seconds=10)
    """From the last look that was answered until a driver ends. Longer bears longer failures of the store, and makes
    the start after a kill longer: Spark takes some 8 s of it."""
    dying: timedelta = timedelta(seconds=2)
    """For SIGKILL to take effect, and for executors to find their driver gone."""

    @property
    def wait(self) -> timedelta:
        """From taking an epoch to the first write, unless the predecessor has closed."""
        return self.patience + self.dying


@dataclass(frozen=True, slots=True)
class Epoch:
    """A start of a driver."""

    number: int
    """From 1."""
    owner: str
    """The id of the driver."""
    previous_closed: bool
    """No earlier driver can still be writing: the last one said so when it ended, or there was none."""
    keys: tuple[str, ...]
    """What is in `epochs/`, this one included."""


def take_epoch(store: LogStore, owner: str, now: datetime, had: int = 0) -> Epoch:
    """Take the next epoch; of several drivers that start at once, each gets its own.

    Args:
        store: of the log.
        owner: an id of this driver that no other has; tells a lost answer from a lost race.
        now: written down for the reader of the log; nothing is decided by it.
        had: the epoch that this driver had before it began anew; 0: it has just been started.

    Raises:
        FencedError: another driver has taken over from that one.
    """
    while True:
        keys = store.list(EPOCHS)
        last = _newest(keys)
        if 0 < had < last and owner_of(store, last) != owner:
            raise FencedError(
                f"epoch {last} has taken over from this driver's epoch {had} before it has begun anew; "
                "it stops without writing. Run one driver per writer and checkpoint."
            )
        key = epoch_key(last + 1)
        body = encode("epoch", {"epoch": last + 1, "owner": owner, "startedAt": time_to_json(now)})
        if claim(store, key, body):
            return Epoch(last + 1, owner, last == 0 or closed_key(last) in keys, (*keys, key))


def owner_of(store: LogStore, epoch: int) -> str | None:
    """The id of the driver that has taken an epoch; None: it has expired since it was listed."""
    try:
        return decode("epoch", store.get(epoch_key(epoch)), lambda fields: str(fields["owner"]))
    except ObjectNotFoundError:
        return None


def newest_epoch(store: LogStore) -> int:
    """Of the drivers so far; 0: there was none."""
    return _newest(store.list(EPOCHS))


def _newest(keys: Sequence[str]) -> int:
    return max(map(number_of, keys), default=0)


@dataclass(frozen=True, slots=True)
class Fence:
    """Whether an epoch is still there, and the highest."""

    store: LogStore
    epoch: int
    owner: str
    """Of the epoch."""

    def check(self) -> None:
        """Look whether this driver still owns the checkpoint. One LIST request, of its own epoch alone as a rule.

        Raises:
            FencedError: a higher epoch exists.
            CheckpointGoneError: this one does not any more.
        """
        found = self.store.list(EPOCHS, after=epoch_key(self.epoch - 1))
        newest = _newest(found)
        if newest > self.epoch:
            raise FencedError(
                f"epoch {newest} has taken over from this driver's epoch {self.epoch}; "
                "it stops without writing. Run one driver per writer and checkpoint."
            )
        if epoch_key(self.epoch) not in found:
            raise self._gone("is gone")

    def glance(self) -> None:
        """Look by two GET requests, which S3 takes a sixth of the price of a LIST for. Raises as `check`; here
        CheckpointGoneError too if the checkpoint was emptied and another driver has begun it anew.

        That a successor's own entry has expired already it does not see. By then this driver had not looked for longer
        than `patience`, and each plan and commit has a `check` of its own.
        """
        try:
            owner = owner_of(self.store, self.epoch)
            if owner == self.owner and owner_of(self.store, self.epoch + 1) is None:
                return
        except StorageDeniedError:  # what S3 says of what is not there to who may list a part of the bucket only
            owner = self.owner
        self.check()
        if owner != self.owner:
            raise self._gone("is another driver's")

    def _gone(self, what: str) -> CheckpointGoneError:
        return CheckpointGoneError(
            f"the checkpoint was deleted, or emptied, under this driver: {epoch_key(self.epoch)}, which it wrote, "
            f"{what}. Nothing more is written. See who does so (a lifecycle rule of the bucket may). Bring its "
            "objects back from versions of the bucket; or delete checkpoint and table, or give other paths, to "
            "begin anew."
        )


class FenceWatch:
    """Looks at the epochs, and calls `on_lost` once when the checkpoint may not be ours any more.

    One thread looks; a second one keeps the time, whatever a look hangs in. Give it a store of its own, with a
    `patience` of seconds: the log's may try a request for minutes.
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
        """Make a watch; entering it as a context starts the threads.

        Args:
            fence: what is looked at.
            on_lost: called in a thread of the watch; must end all writing. Gets a FencedError if there is a
                successor, a CheckpointGoneError if there is nothing to succeed to, a StorageUnavailableError if nobody
                can tell, and another error if the process stood still for so long that there may be a successor.
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
        # Taking the epoch was the first look.
        self._verified = clock()
        self._failure = "no look was answered"
        self._answered = True
        self._telling = threading.Lock()
        self._is_lost = False
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for name, run in (("fence-looks", self._look_again), ("fence-time", self.keep_time))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            # A look that hangs must not hold up the end of the process; the threads are daemons.
            thread.join(timeout=self._settings.interval.total_seconds())
        if isinstance(error, SinkError):
            self._tell_of_outage(error)

    def look(self) -> None:
        """Look once."""
        asked = self._clock()
        try:
            self._fence.glance()
            self._verified, self._answered = asked, True
        except (FencedError, CheckpointGoneError) as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 - a watch that dies of anything is a driver without a fence
            self._failure, self._answered = str(error), False
            unseen = self._clock() - self._verified
            logger.warning("cannot tell for %.1f s whether another driver has taken over: %s", unseen, error)

    def keep_time(self) -> None:
        """Wait until the watch is stopped, or no look has been answered for as long as the settings say."""
        patience = self._settings.patience.total_seconds()
        while (left := self._verified + patience - self._clock()) > 0:
            if self._wait(left):
                return
        # The time keeper waits for nothing else: if it comes late, so did every look.
        stood = -left > self._settings.interval.total_seconds()
        ending = f"another driver may have taken over; this one (epoch {self._fence.epoch}) stops without writing"
        if stood:
            self._lose(LakeStreamError(f"this process stood still for up to {patience - left:.0f} s, and {ending}"))
            return
        self._lose(self._unavailable(f"The log could not be read for {patience:.0f} s, and {ending}"))

    def _tell_of_outage(self, error: SinkError) -> None:
        """Some of what a sink asks is not tried again, as the address of a name that nobody knows for a moment.

        Raises:
            StorageUnavailableError: the log cannot be read either, and that is what is wrong.
        """
        if not self._is_lost:
            self.look()
        if not self._answered:
            raise self._unavailable(f"{error}") from error

    def _unavailable(self, what: str) -> StorageUnavailableError:
        return StorageUnavailableError(f"the storage of the checkpoint does not answer: {self._failure}. {what}")

    def _look_again(self) -> None:
        while not self._wait(self._settings.interval.total_seconds()):
            self.look()

    def _lose(self, error: LakeStreamError) -> None:
        with self._telling:
            if not self._is_lost:
                self._is_lost = True
                self._on_lost(error)
