"""Requests for work on the table, and what came of them.

    services/000000000002.json.gz        the second request
    services/000000000002.decided.json   whether it is carried out, or cancelled: what is put first counts
    services/000000000002.done.json.gz   what came of it

All are put if absent, and never change. There is no request while the one before has no outcome. A driver decides
right before it begins, so that nothing is begun that somebody was told is cancelled. One that is killed behind that has
the next one carry the request out, once more if need be, as all this work may be done twice; of a restore the plan, and
then the commit, tell how far it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from lakestream.errors import CorruptLogError, InvalidValueError, LakeStreamError
from lakestream.log.documents import Document
from lakestream.log.layout import BATCHES, SERVICES, decided_key, number_of, outcome_key, pack, service_key, unpack
from lakestream.log.store import LogStore, claim
from lakestream.model import BatchPlan, Standing
from lakestream.model.codec import decode, encode, require_utc, required_time, time_to_json
from lakestream.storage import ObjectNotFoundError

logger = logging.getLogger(__name__)

CANCELLED = "cancelled before it was begun"
"""The error in the outcome of a request that somebody took back."""


class Work(StrEnum):
    """What may be asked for."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    CLEANING = "cleaning"
    SAVEPOINT = "savepoint"
    SAVEPOINT_DELETION = "savepoint deletion"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Back:
    """What a restore goes back to."""

    standing: Standing
    """Where the writer stood with the commit."""
    rereads: bool
    """As in `Restore`."""
    document: Document = field(default_factory=Document)
    """By which it is to be read again."""

    def to_fields(self) -> dict[str, Any]:
        return {
            "standing": self.standing.to_fields(),
            "rereads": self.rereads,
            **self.document.to_fields(),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Back:
        return cls(Standing.from_fields(fields["standing"]), fields["rereads"], Document.from_fields(fields))


_NAMING = (Work.SAVEPOINT_DELETION, Work.RESTORE)
"""Work that is about an instant."""


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """Work that the writer's driver is to do on the table, beside its batches or between two of them."""

    number: int
    """From 1, without gaps."""
    requested_at: datetime
    """By the clock of who asked."""
    work: Work
    instant: str = ""
    """Of the savepoint that is to be deleted, or the commit that is to be the newest one; empty for other work."""
    comment: str = ""
    """Why, for people: kept with a savepoint."""
    back: Back | None = None
    """Of a restore."""

    def __post_init__(self) -> None:
        require_utc("requested_at", self.requested_at)
        if self.number < 1:
            raise InvalidValueError(f"request {self.number}: requests are numbered from 1")
        if bool(self.instant) != (self.work in _NAMING):
            raise InvalidValueError(f"request {self.number}: a {self.work} with the instant {self.instant!r}")
        if (self.back is None) == (self.work is Work.RESTORE):
            raise InvalidValueError(f"request {self.number}: a restore, and nothing else, says what it goes back to")

    def is_for(self, definition: str, epoch: int) -> bool:
        """Whether a driver carries it out: of that epoch, with a definition of that digest."""
        return self.back is None or self.back.document.is_for(definition, epoch)

    def to_json(self) -> bytes:
        return encode(
            "service",
            {
                "number": self.number,
                "requestedAt": time_to_json(self.requested_at),
                "work": self.work.value,
                "instant": self.instant,
                "comment": self.comment,
                **({"back": self.back.to_fields()} if self.back else {}),
            },
        )

    @classmethod
    def from_json(cls, content: bytes) -> ServiceRequest:
        """Raises CorruptLogError if the content is not a request that `to_json` wrote, or asks for what this release
        does not know."""

        def build(fields: dict[str, Any]) -> ServiceRequest:
            asked = required_time(fields["requestedAt"])
            back = Back.from_fields(found) if (found := fields.get("back")) else None
            return cls(fields["number"], asked, Work(fields["work"]), fields["instant"], fields["comment"], back)

        return decode("service", content, build)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request."""

    number: int
    """Of the request."""
    ended_at: datetime
    """By the driver's clock."""
    error: str = ""
    """Why it was not done, in a line; empty: it was."""

    def to_json(self) -> bytes:
        return encode("outcome", {"number": self.number, "endedAt": time_to_json(self.ended_at), "error": self.error})

    @classmethod
    def from_json(cls, content: bytes) -> Outcome:
        """Raises CorruptLogError if the content is not an outcome that `to_json` wrote."""
        return decode("outcome", content, lambda f: cls(f["number"], required_time(f["endedAt"]), f["error"]))


def ask_for_service(store: LogStore, request: ServiceRequest) -> bool:
    """Put a request; False: somebody else has put one of that number first.

    Raises:
        OutcomeUnknownError: the store is unavailable; the same request may be put again.
    """
    return claim(store, service_key(request.number), pack(request.to_json()))


def cancel_service(store: LogStore, number: int, now: datetime) -> bool:
    """Take a request back; False: a driver has begun it, or will, for it had decided that before it ended.

    Raises:
        OutcomeUnknownError, StorageError, StorageUnavailableError: of the store; it may be asked again.
    """
    if _is_planned(store, number) or not _decide(store, number, is_cancelled=True):
        return False
    claim(store, outcome_key(number), pack(Outcome(number, now, CANCELLED).to_json()))
    return True


def _decide(store: LogStore, number: int, *, is_cancelled: bool) -> bool:
    """False: it has been decided otherwise."""
    return claim(store, decided_key(number), encode("decision", {"number": number, "isCancelled": is_cancelled}))


def _is_planned(store: LogStore, number: int) -> bool:
    """Whether it is a restore that has begun: drivers of earlier releases decide nothing before."""
    if not (plans := store.list(BATCHES)):
        return False
    plan = unpack(plans[-1], store.get(plans[-1]), BatchPlan.from_json)
    return plan.restore is not None and plan.restore.request == number


def newest_service(store: LogStore) -> tuple[ServiceRequest, Outcome | None] | None:
    """The newest request, with what came of it so far; None: there was none.

    Raises:
        CorruptLogError: an object cannot be decoded.
        StorageError, StorageUnavailableError: of the store.
    """
    if not (keys := store.list(SERVICES)):
        return None
    number = max(map(number_of, keys))
    request = _read_request(store, number)
    if (key := outcome_key(number)) not in keys:
        return request, None
    return request, unpack(key, store.get(key), Outcome.from_json)


def _read_request(store: LogStore, number: int) -> ServiceRequest:
    key = service_key(number)
    request = unpack(key, store.get(key), ServiceRequest.from_json)
    if request.number != number:
        raise CorruptLogError(f"{key} holds request {request.number}")
    return request


_LOOK_SECONDS = 10.0
"""Between two looks for a new request. Each is one GET: 8,640 a day."""


class ServiceRequests:
    """The requests of one writer, as its driver sees them. But by `has_outcome`, nothing is raised for the store or for
    what is wrong with a request: batches go on, and the log says why."""

    def __init__(self, store: LogStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._next: int | None = None
        self._found: ServiceRequest | None = None
        self._looked = -_LOOK_SECONDS
        self._decided = 0
        self._said = ""

    def next(self) -> ServiceRequest | None:
        """The request that has no outcome yet; None: there is none, as of a look in the last ten seconds."""
        now = self._monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return self._found
        self._looked = now
        try:
            if self._next is None:
                newest = newest_service(self._store)
                self._next = 1 if newest is None else newest[0].number + (newest[1] is not None)
            request = self._found or _read_request(self._store, self._next)
            if request.number != self._decided and self.has_outcome(request.number):
                self._end(request.number)
                return None
        except ObjectNotFoundError:
            return None
        except LakeStreamError as error:
            self._say(f"requests for work on the table have to wait: {error}")
            return self._found
        self._found = request
        return request

    def has_outcome(self, number: int) -> bool:
        """Whether a request has one. Of one that was not begun: whether it was cancelled.

        Raises:
            StorageError, StorageUnavailableError: of the store.
        """
        try:
            self._store.get(outcome_key(number))
        except ObjectNotFoundError:
            return False
        return True

    def decide(self, request: ServiceRequest) -> bool:
        """Have a request carried out for certain, right before it is begun; False: it is not, for it is cancelled, or
        not now, for the store does not answer."""
        try:
            if request.number == self._decided or _decide(self._store, request.number, is_cancelled=False):
                self._decided = request.number
                return True
        except LakeStreamError as error:
            self._say(f"request {request.number} has to wait: {error}")
            return False
        logger.info("request %d, a %s, is cancelled", request.number, request.work)
        self.done(Outcome(request.number, datetime.now(UTC), CANCELLED))  # unless who cancelled it has put it
        return False

    def done(self, outcome: Outcome) -> bool:
        """Keep what came of a request; False: it could not be, and is to be tried again."""
        try:
            claim(self._store, outcome_key(outcome.number), pack(outcome.to_json()))
        except LakeStreamError as error:
            self._say(f"the outcome of request {outcome.number} cannot be kept yet: {error}")
            return False
        self._end(outcome.number)
        return True

    def _end(self, number: int) -> None:
        self._next = number + 1
        self._found = None

    def _say(self, text: str) -> None:
        # What is denied is tried again each second.
        if text != self._said:
            logger.warning("%s", text)
        self._said = text
