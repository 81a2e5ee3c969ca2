"""Fixes batches before they are read: asks Kinesis, decides, and writes the answer down as a BatchPlan."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType

from lakestream.errors import DataLossError, KinesisAnswerError, KinesisUnavailableError, StreamNotFoundError
from lakestream.kinesis.admission import Admission, admit, assign_tasks
from lakestream.kinesis.crew import Crew
from lakestream.kinesis.lineage import (
    adopt,
    behind_losses,
    finish,
    finishable,
    first_cursors,
    may_be_trimmed,
    older_than_kept,
    place,
    retained_since,
    search_from,
    start_ready,
    trim_at,
    unlisted,
    unread_since,
    vanished,
    witness,
    worth_writing,
)
from lakestream.kinesis.listing import Listing, Listings
from lakestream.kinesis.port import IteratorStart, KinesisClient, Shard, Sleep
from lakestream.kinesis.probe import Before, Behind, Closed, Cut, Ended, Next, Peek, Prober, Record, lasting, seen
from lakestream.kinesis.rates import Rates
from lakestream.kinesis.settings import LEAST_RETENTION, PlannerSettings
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Cursor,
    Finished,
    HashKeys,
    Loss,
    Position,
    Reading,
    ShardRange,
    Trim,
    Unpinned,
    Waiting,
    after,
    at,
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    now: datetime
    trim: Trim
    cursors: dict[str, Cursor]
    losses: list[Loss]
    read_from: datetime | None = None
    """Of a first plan: the earliest arrival time that is read from."""
    is_complete: bool = True
    """False: a shard that has something to give could not be taken."""
    unwitnessed: set[str] = field(default_factory=set)
    """Shards of which the last record that was read is gone, and has no reason to be."""


class Planner:
    """Plans the batches of one stream, one after the other.

    A plan goes through these steps; the decisions in them are the pure functions of `lineage`,
    `admission` and `rates`:

    1. know the shards, and start those whose parents are finished
    2. peek at what comes next in each started shard
    3. look for what was trimmed before it was read
    4. finish closed shards that have nothing left, and go on with their children at step 2
    5. choose the horizon: what arrived before it belongs to the batch
    6. find the cut of each shard at the horizon
    7. lay the ranges out in tasks

    Between plans it remembers only what saves calls (live iterators, records already seen), each
    with the place that it is true for; a planner that remembers nothing makes equally right plans.
    """

    def __init__(
        self,
        client: KinesisClient,
        settings: PlannerSettings,
        *,
        slots: Callable[[], int],
        sleep: Sleep = time.sleep,
    ) -> None:
        """`slots` is asked before each plan for the number of tasks that can run at once."""
        self._client = client
        self._settings = settings
        self._slots = slots
        self._prober = Prober(client, sleep)
        self._crew = Crew(settings.threads, "planner")
        self._listings = Listings(client, settings.refresh)
        self._known: dict[str, tuple[IteratorStart, Peek]] = {}
        self._rates = Rates()
        self._tasks: dict[int, int] = {}  # of each batch that is not finished yet
        self._caught_up_to: datetime | None = None

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._crew.close()

    @property
    def caught_up_to(self) -> datetime | None:
        """If the last call of `plan` left nothing unread that had arrived before this (Kinesis) time; else None."""
        return self._caught_up_to

    @property
    def shards(self) -> Mapping[str, Shard]:
        """As they were last listed; none before the first plan."""
        return self._listings.newest.shards if self._listings.newest else {}

    def observe(self, commit: BatchCommit) -> None:
        """Learn from a finished batch how much the next ones should cover."""
        self._rates = self._rates.observe(commit, self._tasks.pop(commit.batch, 0) or self._slots())

    def plan(self, *, batch: int, epoch: int, cursors: Sequence[Cursor], trim: Trim | None = None) -> BatchPlan | None:
        """The batch behind these cursors; None if there is nothing to read and nothing to write down.

        Args:
            cursors: those of the plan or commit before; none if the checkpoint is new.
            trim: likewise.

        Raises:
            DataLossError: records were trimmed before they were read, and losses may not be skipped.
            StreamRecreatedError: the stream was deleted and created again while we watched.
            SettingsError: the starting timestamp lies in the future.
            StreamNotFoundError: the stream is gone.
            KinesisError: Kinesis did not answer, or ListShards is behind the other answers.
        """
        while True:
            try:
                return self._plan(batch, epoch, cursors, trim)
            except StreamNotFoundError as error:
                # Of a stream that is gone there are no listings. A closed shard was dropped since it was listed.
                known = self._listings.newest
                if known is None:
                    raise
                if self._listings.anew(self._client.now()).shards.keys() == known.shards.keys():
                    raise KinesisUnavailableError(f"ListShards lists what Kinesis does not have: {error}") from error

    def _plan(self, batch: int, epoch: int, cursors: Sequence[Cursor], trim: Trim | None) -> BatchPlan | None:
        self._caught_up_to = None
        # A fresh listing tells the time too: after a long sleep the one known before would hide a loss. A first plan
        # begins with the shards of this moment: those that an older listing lacks would be read from their beginning.
        (self._listings.at if cursors else self._listings.anew)(self._client.now())
        now = self._client.now()
        draft, slots = self._open(now, cursors, trim), self._slots()
        nexts = self._peek(draft)
        admission = admit(
            (found.record.arrival for found in nexts.values()),
            min(now, span.until + self._settings.settle) if (span := self._settings.span) else now,
            self._settings.settle,
            self._rates.slice(self._settings, len(nexts), slots),
        )
        ranges = self._cut(draft, nexts, admission)
        left = {shard_id: found.record.arrival for shard_id, found in nexts.items()}
        draft.cursors = behind_losses(draft.cursors, draft.losses, left)
        laid_out = assign_tasks(ranges, slots, self._settings.records_per_task)
        self._tasks[batch] = 1 + max((r.task for r in laid_out), default=0)
        after_batch = tuple(draft.cursors[shard_id] for shard_id in sorted(draft.cursors))
        waits = any(isinstance(cursor, Waiting) for cursor in after_batch)
        caught_up = draft.is_complete and not admission.is_limited and not waits
        self._caught_up_to = admission.horizon if caught_up else None
        if not ranges and not draft.losses and not worth_writing(cursors, after_batch, self._settings.heartbeat):
            return None
        return BatchPlan(
            batch=batch,
            epoch=epoch,
            planned_at=now,
            base=min((r.first_arrival for r in laid_out), default=None),
            horizon=admission.horizon,
            caught_up=caught_up,
            ranges=laid_out,
            cursors=after_batch,
            losses=tuple(draft.losses),
            trim=draft.trim,
            read_from=draft.read_from,
        )

    # Step 1

    def _open(self, now: datetime, cursors: Sequence[Cursor], known: Trim | None) -> _Draft:
        listing = self._listings.at(now)
        trim = trim_at(known, now, listing.summary.retention)
        span = self._settings.span
        self._trust(listing, {c.shard_id: c for c in cursors})
        if not cursors:
            start = span.since if span else self._settings.starting_position
            # From the time of the listing: a shard that it lacks has nothing older.
            first = first_cursors(listing.shards, start, listing.at, listing.summary)
            return _Draft(now, trim, first, [], min(filter(None, map(unread_since, first.values()))))
        draft = _Draft(now, trim, {c.shard_id: c for c in cursors}, [])
        self._take_in(draft, listing)
        draft.cursors = start_ready(draft.cursors, listing.shards)
        return draft

    def _trust(self, listing: Listing, cursors: Mapping[str, Cursor]) -> None:
        """Of what a listing should have, and lacks, Kinesis itself is asked: ListShards may be behind what it said."""
        lacking = unlisted(cursors, listing.shards)
        there = [s for s, has in zip(lacking, self._crew.ask(self._prober.has_shard, lacking), strict=True) if has]
        if there:
            raise KinesisUnavailableError(f"ListShards does not list {', '.join(there)}, which Kinesis has")

    def _take_in(self, draft: _Draft, listing: Listing) -> None:
        """Bring the draft's cursors up to date with a listing: new shards, and vanished ones."""
        gone = vanished(draft.cursors, listing.shards)
        if span := self._settings.span:  # which has passed: what appears now has nothing older than its end
            draft.cursors = adopt(draft.cursors, listing.shards, span.until, span.since)
        else:
            draft.cursors = adopt(draft.cursors, listing.shards, listing.summary.created_at)
        for cursor in gone:
            since = cursor.unread_since
            self._lose(draft, Loss(cursor.shard_id, _position(cursor), None, since, max(since, self._client.now())))
            draft.cursors[cursor.shard_id] = Finished(cursor.shard_id)

    # Steps 2 to 4

    def _peek(self, draft: _Draft) -> dict[str, Next]:
        """The next unread record of each shard that has one; children of one without wait for no batch."""
        nexts: dict[str, Next] = {}
        known: dict[str, tuple[IteratorStart, Peek]] = {}
        while new := [c for s, c in draft.cursors.items() if isinstance(c, Unpinned | Reading) and s not in known]:
            peeks = self._crew.ask(lambda cursor: self._peek_at(cursor, draft), new)
            # What was trimmed while Kinesis was asked is missing in its answers, too.
            self._look_at_retention(draft, new)
            draft.trim = self._trim_by_now(draft)
            known |= {c.shard_id: (place(c), lasting(peek)) for c, peek in zip(new, peeks, strict=True)}
            ended: dict[str, datetime] = {}
            for cursor, peek in zip(new, peeks, strict=True):
                if cursor.shard_id in draft.unwitnessed or may_be_trimmed(cursor, draft.trim.floor):
                    self._check_loss(draft, cursor, peek)
                draft.cursors[cursor.shard_id] = seen(cursor, peek)
                if isinstance(peek, Next):
                    nexts[cursor.shard_id] = peek
                elif isinstance(peek, Ended):
                    ended[cursor.shard_id] = cursor.unread_since
            self._finish(draft, ended)
        self._known = known
        return nexts

    def _look_at_retention(self, draft: _Draft, started: Iterable[Unpinned | Reading]) -> None:
        """Where it matters, since records are old enough, ask whether it was lowered since shards were listed."""
        floor = retained_since(self._client.now(), LEAST_RETENTION)
        unsure = (cursor for cursor in started if isinstance(cursor, Unpinned) or cursor.position.after)
        if any(may_be_trimmed(cursor, floor) for cursor in unsure):
            self._listings.look_at_retention(draft.now)

    def _trim_by_now(self, draft: _Draft) -> Trim:
        return trim_at(draft.trim, self._client.now(), self._listings.at(draft.now).summary.retention)

    def _peek_at(self, cursor: Unpinned | Reading, draft: _Draft) -> Peek:
        last = witness(cursor, draft.trim.floor, draft.now)
        if last is not None and not self._prober.has_found(cursor.shard_id, last):
            draft.unwitnessed.add(cursor.shard_id)
        start = place(cursor)
        where, known = self._known.get(cursor.shard_id, (None, None))
        live = known if where == start else None
        if isinstance(live, Next | Ended):
            return live
        # The cursor itself tells of the record that it stands at, unless that may be gone.
        if isinstance(cursor, Reading) and not cursor.position.after and not may_be_trimmed(cursor, draft.trim.floor):
            return Next(Record(cursor.position.sequence, cursor.arrival))
        most = self._rates.worth_peeking_at(cursor.shard_id, draft.now - cursor.unread_since)
        return self._prober.peek(cursor.shard_id, search_from(cursor), live, most=most)

    def _check_loss(self, draft: _Draft, cursor: Unpinned | Reading, peek: Peek) -> None:
        """The cursor is older than what the stream retains: only the very record that it stands at disproves a loss."""
        position, since = _position(cursor), cursor.unread_since
        found = peek.record if isinstance(peek, Next) else None
        if found is not None and position == at(found.sequence):
            return
        # Of how long the retention may have been meanwhile nobody knows all: lost is all before what is left; if that
        # is nothing, up to now, which may be long after the plan was begun.
        end, until = (at(found.sequence), found.arrival) if found else (None, self._client.now())
        self._lose(draft, Loss(cursor.shard_id, position, end, since, max(since, until)))

    def _lose(self, draft: _Draft, loss: Loss) -> None:
        if not self._settings.skip_losses:
            start = self._settings.starting_position
            if draft.read_from is not None and isinstance(start, datetime):
                raise DataLossError(f"{loss.shard_id}: {older_than_kept(start, draft.trim)}")
            raise DataLossError.of(loss.shard_id, f"records may have been trimmed before they were read: {loss}")
        log.warning("skipping records that may have been trimmed before they were read: %s", loss)
        draft.losses.append(loss)

    def _finish(self, draft: _Draft, ended: dict[str, datetime]) -> None:
        """Finish the closed shards that have nothing left, as soon as their children are known, and start these."""
        ready = self._closable(draft, ended)
        draft.is_complete &= len(ready) == len(ended)
        shards = self._listings.at(draft.now).shards
        draft.cursors = start_ready(finish(draft.cursors, {s: ended[s] for s in ready}, shards), shards)

    def _closable(self, draft: _Draft, ended: Iterable[str]) -> set[str]:
        """Those of the ended shards whose end and children ListShards shows; asks it again if need be."""
        ended = set(ended)
        ready = finishable(ended, self._listings.at(draft.now).shards)
        if ready != ended:
            listing = self._listings.anew(draft.now)
            self._trust(listing, draft.cursors)
            self._take_in(draft, listing)
            ready = finishable(ended, listing.shards)
        return ready

    # Steps 5 to 7

    def _cut(self, draft: _Draft, nexts: dict[str, Next], admission: Admission) -> list[ShardRange]:
        horizon = admission.horizon
        taken = [(shard_id, nexts[shard_id]) for shard_id in sorted(nexts) if nexts[shard_id].record.arrival < horizon]
        cuts = self._crew.ask(lambda one: self._certain_cut(draft, *one, horizon), taken)
        firsts = [(shard_id, found.record) for shard_id, found in taken]
        closed = {s: first.arrival for (s, first), cut in zip(firsts, cuts, strict=True) if isinstance(cut, Closed)}
        closable = self._closable(draft, closed)
        ranges = []
        for (shard_id, first), cut in zip(firsts, cuts, strict=True):
            cursor = draft.cursors[shard_id]
            if isinstance(cursor, Reading) and (shard_id in closable or not isinstance(cut, Closed)):
                ranges.append(self._range(draft, cursor, first, cut, horizon))
            else:
                draft.is_complete = False
        draft.cursors = finish(draft.cursors, {s: closed[s] for s in closable}, self._listings.at(draft.now).shards)
        return ranges

    def _certain_cut(self, draft: _Draft, shard_id: str, found: Next, horizon: datetime) -> Cut:
        cut = found.tail.cut(horizon) if found.tail else None
        if cut is None:
            is_short = self._rates.are_few(shard_id, horizon - found.record.arrival)
            cut = self._prober.cut(shard_id, found.record, horizon, is_short=is_short)
        floor = max(self._trim_by_now(draft).floor, retained_since(self._client.now(), LEAST_RETENTION))
        if isinstance(cut, Behind) and cut.record.arrival < floor:
            # Nothing behind the last record, or nothing any more? While that one is there, the first.
            return cut if self._prober.finds(shard_id, cut.record.sequence) else Behind(cut.record, None)
        return cut

    def _range(self, draft: _Draft, cursor: Reading, first: Record, cut: Cut, horizon: datetime) -> ShardRange:
        """The range up to the cut; moves the shard's cursor there."""
        shard_id = cursor.shard_id
        match cut:
            case Before(record):
                end, end_arrival = at(record.sequence), horizon
                draft.cursors[shard_id] = Reading(shard_id, end, record.arrival, None)
            case Behind(record, idle):
                end, end_arrival = after(record.sequence), record.arrival
                draft.cursors[shard_id] = Reading(shard_id, end, record.arrival, idle.seen_at if idle else None)
                if idle is None:
                    draft.is_complete = False
                else:
                    self._known[shard_id] = (end, idle)
            case Closed():
                end, end_arrival = after(self._ending(shard_id, first)), horizon
        span = max(end_arrival - first.arrival, timedelta(0))
        return ShardRange(
            shard_id=shard_id,
            start=cursor.position,
            end=end,
            first=first.sequence,
            first_arrival=first.arrival,
            end_arrival=first.arrival + span,
            closes_shard=isinstance(cut, Closed),
            expected_records=self._rates.expect(shard_id, span),
            task=0,
            hash_keys=self._hash_keys(draft, shard_id),
        )

    def _hash_keys(self, draft: _Draft, shard_id: str) -> HashKeys | None:
        listing = self._listings.at(draft.now)
        if not (self._settings.drop_misplaced and listing.summary.places_by_key):
            return None
        return listing.shards[shard_id].hash_keys

    def _ending(self, shard_id: str, first: Record) -> int:
        ending = self.shards[shard_id].ending_sequence
        if ending is None or ending < first.sequence:
            told = f"{shard_id} is closed with EndingSequenceNumber {ending}, but holds {first.sequence}"
            raise KinesisAnswerError.of("ListShards", told)
        return ending


def _position(cursor: Cursor) -> Position | None:
    return cursor.position if isinstance(cursor, Reading) else None
