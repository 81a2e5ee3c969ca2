"""The log of one writer: plans, commits and epochs. It is the only truth about what has been written."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol, TypeVar
from uuid import UUID, uuid4

from lakestream.errors import CorruptLogError, InvalidValueError, LakeStreamError, RetryLaterError
from lakestream.log.fence import Epoch, Fence, FenceSettings, take_epoch
from lakestream.log.identity import Identity, claim_identity
from lakestream.log.layout import (
    BATCHES,
    COMMITS,
    MANIFESTS,
    batch_key,
    closed_key,
    commit_key,
    manifest_key,
    number_of,
    pack,
    unpack,
)
from lakestream.log.manifest import BATCHES_PER_MANIFEST, BatchFiles, Manifest
from lakestream.log.services import ServiceRequests
from lakestream.log.standings import forget_standing, keep_standing
from lakestream.log.store import LogStore, claim
from lakestream.log.taking import Requests
from lakestream.log.undone import rejects_behind
from lakestream.model import BatchCommit, BatchPlan, Portion, SpanDue, Standing, Taken
from lakestream.model.codec import encode, time_to_json
from lakestream.storage import ObjectNotFoundError

logger = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class StaleLogError(RetryLaterError):
    """A predecessor has written to the log since this driver read it; a new start reads it again."""


class CheckpointLog:
    """One driver's hold on a writer's log. Its methods may be called from several threads.

    What it guarantees, to all drivers that ever open the log, whatever is killed or late:

    1. A batch has at most one commit, and until then at most one plan, and they never change.
    2. Plans and commits are numbered from 0 without gaps; nothing is committed that was not planned.
    3. A plan that `put_plan` has accepted is seen by every later driver: the plan is written *before*
       the look at the epochs, and a new driver takes its epoch *before* it reads the plans, so at
       least one of the two sees the other.
    4. A driver with a successor can have no plan accepted, and no commit but one that was under way
       when the successor started; it gets FencedError.
    """

    def __init__(
        self,
        store: LogStore,
        checkpoint: UUID,
        epoch: Epoch,
        safe_at: float,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        keep: int,
    ) -> None:
        """Use `open`."""
        self.checkpoint = checkpoint
        """The checkpoint's UUID; goes into Hudi's commits, with the number of the batch."""
        self.epoch = epoch.number
        self.owner = epoch.owner
        """The id of this driver."""
        self.previous_closed = epoch.previous_closed
        self._store = store
        self._safe_at = safe_at
        self._now = now
        self._keep = keep
        self._monotonic = monotonic
        self._fence = Fence(store, epoch.number, epoch.owner)
        self._lock = threading.Lock()
        self._epochs = list(epoch.keys)
        self._entries = store.list(COMMITS)
        self._last_commit = self._read_last_commit(self._entries)
        batches = store.list(BATCHES)
        self._entries += batches
        self._plans = self._read_plans(batches)
        self._require_newest()
        self._expires = True
        self._files: dict[int, BatchFiles] = {}
        self._unlisted: int | None = None
        self._requests = Requests(store, epoch.number, monotonic)
        self._requests.begin(self._last_commit.taken if self._last_commit else None)
        self.services = ServiceRequests(store, monotonic)
        """What somebody has asked for to be done on the table."""

    @classmethod
    def open(
        cls,
        store: LogStore,
        identity: Identity,
        *,
        owner: str | None = None,
        had: int = 0,
        fence: FenceSettings = FenceSettings(),  # noqa: B008 - frozen
        now: Callable[[], datetime] = _now,
        monotonic: Callable[[], float] = time.monotonic,
        keep: int = BATCHES_PER_MANIFEST,
    ) -> CheckpointLog:
        """Take over the log: check the identity, take the next epoch, read where things stand.

        Args:
            store: the writer's part of the checkpoint.
            identity: what it must belong to.
            owner: an id of the driver that no other has; one that begins anew keeps it.
            had: the epoch that such a driver had; 0: none.
            fence: how drivers tell each other apart in time.
            now: the time.
            keep: how many commits and epochs stay, and how many batches are in a manifest.

        Raises:
            FencedError: another driver has taken over from the epoch that this one had.
            IdentityMismatchError: it belongs to another stream or to other settings.
            CorruptLogError: an object cannot be decoded, or plans or commits are missing.
            StaleLogError: a predecessor has committed meanwhile.
            StorageError, StorageUnavailableError, OutcomeUnknownError: of the store.
        """
        if keep < 1:
            raise InvalidValueError(f"keep must be at least 1, got {keep}")
        checkpoint = claim_identity(store, identity)
        epoch = take_epoch(store, owner or uuid4().hex, now(), had)
        # Counted from after the epoch became visible, by one clock only, that nobody sets: the store's and the
        # predecessor's may differ from ours.
        safe_at = monotonic() + (0.0 if epoch.previous_closed else fence.wait.total_seconds())
        return cls(store, checkpoint, epoch, safe_at, now, monotonic, keep)

    def seconds_until_safe(self) -> float:
        """Until then nothing may be written to a sink, or undone there: the predecessor may not have stopped yet."""
        return max(0.0, self._safe_at - self._monotonic())

    def last_commit(self) -> BatchCommit | None:
        """The newest commit; None before the first."""
        return self._last_commit

    def newest_files(self) -> Mapping[int, frozenset[str]]:
        """The objects of the newest batches that are committed, by batch; from any thread.

        Of those alone whose commits stay: an older one has come back by a driver that stood still within its PUT until
        it had expired, and what it says may not be what was committed.

        Raises:
            CorruptLogError, StorageError, StorageUnavailableError: of the log.
        """
        with self._lock:
            commits = [number_of(key) for key in self._entries if key.startswith(COMMITS)]
            batches = [batch for batch in commits if batch >= self._first_kept()]
        found: dict[int, frozenset[str]] = {}
        for batch in batches:
            with suppress(ObjectNotFoundError):  # expired meanwhile
                commit = self._read(commit_key(batch), BatchCommit.from_json)
                found[batch] = frozenset(entry.path for entry in BatchFiles.of(commit).files)
        return found

    def pending_plans(self) -> tuple[BatchPlan, ...]:
        """Plans that are not committed, ascending. A starting driver has to carry these out first."""
        return self._plans

    def require_known(self, newest: tuple[str, int] | None) -> None:
        """Check that the log has planned what is in the table.

        Args:
            newest: instant and number of the table's newest batch of this checkpoint; None: it has none.

        Raises:
            CorruptLogError: it is of another time than the table: batches would be made again that are there.
        """
        if newest is not None and newest[1] >= self._next_batch():
            raise CorruptLogError(
                f"the table has batch {newest[1]} (instant {newest[0]}), of which the checkpoint knows nothing: its "
                f"next is batch {self._next_batch()}. It is a copy that is older than the table, or objects are "
                "missing. Bring all of them back; or give another spec.checkpoint and another path, to begin anew."
            )

    def put_plan(self, plan: BatchPlan) -> None:
        """Fix a batch. Only after this may its records be read into the sink.

        Raises:
            FencedError: another driver has taken over; nothing may be written for this plan.
            StaleLogError: a predecessor, fenced since, has planned this batch.
            OutcomeUnknownError: the store is unavailable; the same plan may be put again.
        """
        with self._lock:
            self._require(plan.batch, self._next_batch(), plan.epoch, "plan")
            key = batch_key(plan.batch)
            self._claim(key, pack(plan.to_json()))
            self._fence.check()
            self._entries.append(key)
            self._plans = (*self._plans, plan)

    def put_commit(self, commit: BatchCommit) -> None:
        """Say that a batch is visible in the sink.

        Raises:
            FencedError: another driver has taken over; whether it commits this batch is now up to it.
            StaleLogError: a predecessor, fenced since, has committed this batch.
            OutcomeUnknownError: the store is unavailable; the same commit may be put again.
        """
        with self._lock:
            if not self._plans:
                raise InvalidValueError(f"commit of batch {commit.batch}: no plan is pending")
            self._require(commit.batch, self._plans[0].batch, commit.epoch, "commit")
            key = commit_key(commit.batch)
            # A late driver could otherwise create a commit anew that its successors have expired already.
            self._fence.check()
            self._claim(key, pack(commit.to_json()))
            self._entries.append(key)
            self._last_commit = commit
            self._files[commit.batch] = BatchFiles.of(commit)
            self._plans = self._plans[1:]
            if commit.restore is not None:
                self._requests.begin(commit.taken)

    def requested(self, behind: Taken | None, definition: str, records: int) -> Portion | SpanDue | None:
        """What the batch behind one that is as far as this takes of what somebody has asked for, as `Requests.next`."""
        return self._requests.next(behind, definition, records)

    @property
    def is_asked(self) -> bool:
        """Whether somebody has asked for something that is not all taken yet, as far as this driver has seen; from any
        thread."""
        return self._requests.is_due

    def keep_standing(self, instant: str) -> None:
        """Keep the newest commit's for the savepoint of an instant, which is the table's newest."""
        if self._last_commit is not None:
            keep_standing(self._store, instant, Standing.of(self._last_commit))

    def forget_standing(self, instant: str) -> None:
        """Forget what was kept for the savepoint of an instant."""
        forget_standing(self._store, instant)

    def rejects_behind(self, batch: int) -> tuple[str, ...]:
        """What later batches than that one have in quarantine."""
        return rejects_behind(self._store, batch)

    def check_fence(self) -> None:
        """Raise FencedError if a higher epoch exists, CheckpointGoneError if this driver's is gone."""
        self._fence.check()

    def expire(self) -> None:
        """Remove all but the newest commits, their plans, and as many epochs, once manifests have what they said.

        One request to delete two objects after each commit (and none to list), so that the log and
        the time to open it stay as small after a year as after a day. The newest commit stays always.
        What cannot be done is tried again with the next commit: a log that grows is no reason to write no more.
        """
        with self._lock:
            if self._last_commit is None:
                return
            try:
                self._write_manifests(self._last_commit.batch + 1)
                stale = [key for key in self._entries if number_of(key) < self._first_kept()]
                stale += [key for key in self._epochs if number_of(key) < self.epoch - self._keep + 1]
                self._store.delete(stale)
            except LakeStreamError as error:
                if self._expires:
                    logger.warning("what the log needs no more stays: %s", error)
                self._expires = False
                return
            self._expires = True
            gone = set(stale)
            self._entries = [key for key in self._entries if key not in gone]
            self._epochs = [key for key in self._epochs if key not in gone]

    def close(self, through: LogStore | None = None) -> None:
        """Say that this driver writes no more, so that the next one need not wait.

        A failure is only logged: the next driver waits a few seconds. Before it is safe to write
        nothing is said, for the marker speaks for the predecessors as well.

        Args:
            through: the store by other means, which give up soon: whoever ends a driver waits for this.
        """
        if self.seconds_until_safe() > 0:
            return
        body = encode("closed", {"epoch": self.epoch, "closedAt": time_to_json(self._now())})
        try:
            claim(through or self._store, closed_key(self.epoch), body)
        except LakeStreamError as error:
            logger.warning("epoch %d could not be marked as closed: %s", self.epoch, error)

    def _write_manifests(self, end: int) -> None:
        """Write those that are due, all batches before `end` being committed."""
        if self._unlisted is None:
            oldest = next(number_of(key) for key in self._entries if key.startswith(COMMITS))
            there = self._store.list(MANIFESTS, after=manifest_key(max(0, oldest - 1)))
            self._unlisted = number_of(there[-1]) + 1 if there else oldest
        while (last := self._unlisted // self._keep * self._keep + self._keep - 1) < end:
            batches = (self._files_of(batch) for batch in range(self._unlisted, last + 1))
            # Commits never change, so another driver's manifest says the same.
            claim(self._store, manifest_key(last), pack(Manifest.of(self._unlisted, batches).to_json()))
            self._unlisted = last + 1

    def _files_of(self, batch: int) -> BatchFiles:
        if batch in self._files:
            return self._files.pop(batch)
        return BatchFiles.of(self._read(commit_key(batch), BatchCommit.from_json))

    def _claim(self, key: str, body: bytes) -> None:
        if claim(self._store, key, body):
            return
        self._fence.check()
        raise StaleLogError(
            f"{key} was written by an earlier driver, just before it saw that epoch {self.epoch} has taken over. "
            "Start this one again: it goes on from there."
        )

    def _next_batch(self) -> int:
        return self._plans[-1].batch + 1 if self._plans else self._first_pending()

    def _first_kept(self) -> int:
        """The oldest batch whose commit stays when others expire."""
        return self._first_pending() - self._keep

    def _first_pending(self) -> int:
        return 0 if self._last_commit is None else self._last_commit.batch + 1

    def _require(self, batch: int, expected: int, epoch: int, what: str) -> None:
        if batch != expected:
            raise InvalidValueError(f"{what} of batch {batch}: batch {expected} is next")
        if epoch != self.epoch:
            raise InvalidValueError(f"{what} of batch {batch}: its epoch is {epoch}, this driver's {self.epoch}")

    def _read_last_commit(self, keys: list[str]) -> BatchCommit | None:
        if not keys:
            return None
        return self._read(keys[-1], BatchCommit.from_json)

    def _require_newest(self) -> None:
        """Manifests are written of commits, and the newest commit stays: a log that has one beyond it has lost commits,
        and would make batches again that are in the table."""
        first = self._first_pending()
        newest = self._store.list(MANIFESTS, after=manifest_key(first - 1) if first else None)
        if newest and self._store.list(COMMITS, after=commit_key(first - 1) if first else None):
            raise StaleLogError(f"an earlier driver has written {newest[-1]} meanwhile. Start this one again.")
        if newest:
            raise CorruptLogError(
                f"the checkpoint has {newest[-1]}, and not the commit of that batch: objects are missing. Bring all of "
                "its objects back (from versions of the bucket, or a whole copy that is as new as the table); or give "
                "another spec.checkpoint and another path, to begin anew."
            )

    def _read_plans(self, keys: list[str]) -> tuple[BatchPlan, ...]:
        first = self._first_pending()
        plans = tuple(self._read(key, BatchPlan.from_json) for key in keys if number_of(key) >= first)
        for expected, plan in enumerate(plans, start=first):
            if plan.batch != expected:
                raise CorruptLogError(f"{batch_key(expected)} is missing, although {batch_key(plan.batch)} exists")
        return plans

    def _read(self, key: str, parse: Callable[[bytes], Numbered]) -> Numbered:
        entry = unpack(key, self._store.get(key), parse)
        if entry.batch != number_of(key):
            raise CorruptLogError(f"{key} holds batch {entry.batch}")
        return entry


class _Numbered(Protocol):
    @property
    def batch(self) -> int: ...


Numbered = TypeVar("Numbered", bound=_Numbered)
