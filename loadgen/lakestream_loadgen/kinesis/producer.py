"""The producer that all users of a process share: batches, sends, tries again, keeps the ledger."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from random import Random
from typing import Protocol

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from lakestream_loadgen.errors import LoadgenError, NotWrittenError, OutcomeUnknownError, PutRecordsError
from lakestream_loadgen.kinesis.batching import Accumulator, BatchLimits, Parcel, parcels
from lakestream_loadgen.kinesis.client import PutRecordsClient
from lakestream_loadgen.kinesis.groups import Groups
from lakestream_loadgen.kinesis.retry import RetryPolicy
from lakestream_loadgen.kinesis.wire import THROTTLED, Answer, decode_answer, encode_request, records_named
from lakestream_loadgen.ledger.outcomes import Outcome, Settled
from lakestream_loadgen.records import Record

logger = logging.getLogger(__name__)

_EVENT_ID = itemgetter(0)


class Observer(Protocol):
    """Hears of all that happens, for statistics."""

    def called(self, seconds: float, request_bytes: int, error: PutRecordsError | None) -> None:
        """A PutRecords call ended, well or not."""

    def acknowledged(self, records: int, data_bytes: int, latencies: Counter[float]) -> None:
        """Records were written; ``latencies``: seconds from hand-in to acknowledgement → records."""

    def throttled(self, records: int) -> None:
        """Records were refused for the throughput of their shard; they are sent again."""

    def given_up(self, records: int, outcome: Outcome, code: str) -> None:
        """Records were not acknowledged and are not sent again."""


class Ledger(Protocol):
    """What the producer needs of a ledger; see LedgerWriter."""

    def sent(self, records: Sequence[Record]) -> int: ...

    def settled(self, settled: Settled) -> None: ...


@dataclass(frozen=True)
class ProducerSettings:
    """How a producer batches and retries."""

    stream: str
    connections: int = 16
    """PutRecords calls under way at a time."""
    limits: BatchLimits = field(default_factory=BatchLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class _Ticket:
    """A user's wait for its records."""

    __slots__ = ("acknowledged", "done", "left")

    def __init__(self, records: int) -> None:
        self.left = records
        self.acknowledged = 0
        self.done = Event()

    def settled(self, records: int, *, acknowledged: bool) -> None:
        self.left -= records
        if acknowledged:
            self.acknowledged += records
        if not self.left:
            self.done.set()


class KinesisProducer:
    """Writes the records of many greenlets to one stream in shared PutRecords calls.

    For each batch, in this order: (1) its new records are noted in the ledger as sent, (2) the call is made,
    (3) outcomes are noted in the ledger, (4) the users are woken, and records to be sent again are queued.

    Args:
        on_failure: Called once with the reason when nothing can be sent any more, as without a ledger.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        client: PutRecordsClient,
        *,
        ledger: Ledger,
        observer: Observer,
        random: Random,
        on_failure: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._client = client
        self._ledger = ledger
        self._observer = observer
        self._random = random
        self._on_failure = on_failure
        self._clock = clock
        self._queue = Accumulator(settings.limits)
        self._groups = Groups()
        self._unsettled = 0
        self._wake = Event()
        self._turn = BoundedSemaphore(1)
        self._idle = Event()
        self._idle.set()
        self._tickets: set[_Ticket] = set()
        self._ending = False
        self._failure: BaseException | None = None
        self._told: set[str] = set()
        """Kinds of failed calls that the log has told of: each once, since there may be thousands."""
        self._senders = [gevent.spawn(self._send_forever) for _ in range(settings.connections)]
        for sender in self._senders:
            sender.link_exception(self._broken)

    def put(self, records: Sequence[Record]) -> int:
        """Write records, and wait until each is settled; returns how many were acknowledged.

        Raises:
            LoadgenError: the producer is broken (its ledger cannot be written).
            GreenletExit: the run has come to its end, as Locust tells a user that it stops.
            UnicodeEncodeError: a partition key or an event's id is no text; nothing is written.
        """
        if not records:
            return 0
        self._check()
        if self._ending:
            # To wait until Locust stops the user would be to wait for ever in its `on_stop`.
            raise gevent.GreenletExit
        # The ledger takes no other ids, and without it nobody could write any more.
        "".join(map(_EVENT_ID, records)).encode()
        now = self._clock()
        ticket = _Ticket(len(records))
        cut = list(parcels(records, ticket, now, self._settings.limits))
        self._unsettled += len(records)
        self._idle.clear()
        for parcel in cut:
            self._enqueue(self._groups.admit(parcel), now)
        self._tickets.add(ticket)
        try:
            ticket.done.wait()
        finally:
            # Also of a user that Locust has stopped in its wait.
            self._tickets.discard(ticket)
        self._check()
        return ticket.acknowledged

    @property
    def backlog(self) -> int:
        """Records that could be sent now if there were a connection free."""
        return self._queue.records

    def drain(self, seconds: float) -> int:
        """Take nothing more, and wait until all is settled; what is not after ``seconds`` is given up, and counted.

        By whoever is here: figures and the exit status are taken next, and would know nothing of it.
        """
        self._ending = True
        # Nobody else comes to share a request, and a long linger would outlast the wait.
        self._queue.hurry()
        self._wake.set()
        self._idle.wait(timeout=seconds)
        left = self._unsettled
        if left:
            self.close()
        return left

    def close(self) -> None:
        """Stop sending; what is not settled by now is noted as such, and its users are released. Twice is once."""
        gevent.killall(self._senders)
        self._client.close()
        left = [*self._queue.clear(), *self._groups.clear()]
        self._give_up(left, "Stopped")

    def _check(self) -> None:
        if self._failure is not None:
            raise LoadgenError(f"the producer of {self._settings.stream} is broken: {self._failure}") from self._failure

    def _broken(self, sender: gevent.Greenlet) -> None:
        """Without a ledger or a sender nothing may be sent: let everybody know instead of waiting for ever."""
        first = self._failure is None
        self._failure = self._failure or sender.exception
        gevent.killall(self._senders, block=False)
        for ticket in self._tickets:
            ticket.done.set()
        self._idle.set()
        if first:
            self._on_failure(f"the producer of {self._settings.stream} is broken: {self._failure}")

    def _enqueue(self, parcel: Parcel | None, now: float) -> None:
        if parcel is not None and self._queue.add(parcel, now):
            self._wake.set()

    def _send_forever(self) -> None:
        while True:
            batch = self._next_batch()
            while batch:
                batch = self._send(batch)

    def _next_batch(self) -> list[Parcel]:
        # One sender at a time looks at the queue; the others wait for their turn, not for the same event.
        with self._turn:
            while True:
                now = self._clock()
                batch = self._queue.take(now)
                if batch:
                    return batch
                self._wake.clear()
                due = self._queue.next_due(now)
                self._wake.wait(timeout=None if due is None else max(due - now, 0.0))

    def _send(self, batch: list[Parcel]) -> list[Parcel]:
        """Returns what of it is to be sent again at once."""
        self._note_sent(batch)
        # Encoded only now: entries made when records are handed in would wait with them, and fill the CPU's caches.
        records = list(chain.from_iterable([parcel.records for parcel in batch]))
        body = encode_request(self._settings.stream, records)
        started = self._clock()
        error: PutRecordsError | None = None
        try:
            answer = decode_answer(self._client.put_records(body), len(records))
        except PutRecordsError as failure:
            error = failure
        except gevent.GreenletExit:
            # Stopped in mid-call: the request may have arrived.
            for parcel in batch:
                parcel.possible += 1
            self._give_up(batch, "Stopped")
            raise
        self._observer.called(self._clock() - started, len(body), error)
        if error is not None:
            return self._call_failed(batch, error)
        if answer.errors:
            self._partly_written(batch, answer)
        else:
            self._written(batch, answer.shard_ids, answer.sequence_numbers)
        return []

    def _note_sent(self, batch: list[Parcel]) -> None:
        fresh = [parcel for parcel in batch if not parcel.rows]
        if fresh:
            row = self._ledger.sent(list(chain.from_iterable([parcel.records for parcel in fresh])))
            for parcel in fresh:
                parcel.rows = range(row, row + len(parcel))
                row += len(parcel)
        for parcel in batch:
            parcel.attempts += 1

    def _call_failed(self, batch: list[Parcel], error: PutRecordsError) -> list[Parcel]:
        if isinstance(error, OutcomeUnknownError):
            for parcel in batch:
                parcel.possible += 1
        if isinstance(error, OutcomeUnknownError | NotWrittenError):
            if error.code not in self._told:
                self._told.add(error.code)
                logger.warning("PutRecords failed, and is sent again: %s (told once; statistics count them)", error)
            self._again(batch, error.code)
            return []
        logger.error("PutRecords is refused: %s", error)
        return self._refused(batch, error)

    def _refused(self, batch: list[Parcel], error: PutRecordsError) -> list[Parcel]:
        """Give up the records that Kinesis takes in no call, and return the others; give up all, if it names none."""
        named = records_named(str(error))
        bad: list[Parcel] = []
        others: list[Parcel] = []
        at = 0
        for parcel in batch:
            for parts, wanted in ((bad, True), (others, False)):
                indices = [index for index in range(len(parcel)) if (at + index in named) is wanted]
                if indices:
                    parts.append(parcel.part(indices))
            at += len(parcel)
        self._give_up(bad or batch, error.code)
        if not bad:
            return []
        for parcel in others:
            # Kinesis names ten at most. That there are more of others' records in the call costs these no attempt.
            parcel.attempts -= 1
        return others

    def _partly_written(self, batch: list[Parcel], answer: Answer) -> None:
        written: list[Parcel] = []
        again: dict[str, list[Parcel]] = {}
        at = 0
        for parcel in batch:
            by_error: dict[str | None, list[int]] = {}
            for index, error in enumerate(answer.errors[at : at + len(parcel)]):
                by_error.setdefault(error, []).append(index)
            at += len(parcel)
            for error, indices in by_error.items():
                part = parcel.part(indices)
                if error is None:
                    written.append(part)
                    continue
                # An internal failure of Kinesis's own says nothing about what was stored.
                part.possible += error != THROTTLED
                again.setdefault(error, []).append(part)
        if written:
            places = [index for index, error in enumerate(answer.errors) if error is None]
            self._written(
                written,
                [answer.shard_ids[index] for index in places],
                [answer.sequence_numbers[index] for index in places],
            )
        for code, parts in again.items():
            if code == THROTTLED:
                self._observer.throttled(sum(len(part) for part in parts))
            self._again(parts, code)

    def _written(
        self, batch: Sequence[Parcel], shard_ids: Sequence[str | None], sequence_numbers: Sequence[str | None]
    ) -> None:
        self._ledger.settled(
            Settled(
                Outcome.ACKNOWLEDGED,
                list(chain.from_iterable([parcel.rows for parcel in batch])),
                [parcel.possible + 1 for parcel in batch for _ in parcel.rows],
                shard_ids,
                sequence_numbers,
            )
        )
        now = self._clock()
        latencies: Counter[float] = Counter()
        for parcel in batch:
            latencies[now - parcel.since] += len(parcel)
        data_bytes = sum([parcel.data_bytes for parcel in batch])
        self._observer.acknowledged(len(shard_ids), data_bytes, latencies)
        self._settle(batch, acknowledged=True)

    def _again(self, batch: Sequence[Parcel], code: str) -> None:
        now = self._clock()
        for parcel in batch:
            delay = self._settings.retry.delay(parcel.attempts, self._random)
            if delay is None:
                self._give_up([parcel], code)
            else:
                self._queue.add_later(parcel, now + delay)
        self._wake.set()

    def _give_up(self, batch: Sequence[Parcel], code: str) -> None:
        for outcome in (Outcome.FAILED, Outcome.UNKNOWN):
            group = [parcel for parcel in batch if (parcel.possible > 0) is (outcome is Outcome.UNKNOWN)]
            if not group:
                continue
            # What never left has no rows in the ledger, and needs none. A ledger that failed says by itself that what
            # it has no outcome of may have been written.
            rows = [row for parcel in group for row in parcel.rows]
            if rows and self._failure is None:
                attempts = [parcel.possible for parcel in group for _ in parcel.rows]
                self._ledger.settled(Settled(outcome, rows, attempts))
            self._observer.given_up(sum(len(parcel) for parcel in group), outcome, code)
            self._settle(group, acknowledged=False)

    def _settle(self, batch: Sequence[Parcel], *, acknowledged: bool) -> None:
        for parcel in batch:
            parcel.waiting.settled(len(parcel), acknowledged=acknowledged)
            self._unsettled -= len(parcel)
        now = self._clock()
        for released in self._groups.settle(list(chain.from_iterable([parcel.records for parcel in batch]))):
            self._enqueue(released, now)
        if not self._unsettled:
            self._idle.set()
