"""Requests to take something into the table beside the stream.

    replays/000000000003.json.gz          the third, with the files, or parts of files, that it names, or its span
    replays/000000000003.cancelled.json   what is not taken of it yet is not to be taken any more

The files are those of the quarantine, whose records are replayed, or others, for a backfill; which may also be of a
span of the stream. A request is put if absent, and never changed; there is none while the one before is not done. It
names every file, so a driver needs to look through nothing; what is in a span it asks the stream. How far a request is
carried out is in plans and commits (`Taken`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakestream.errors import CorruptLogError, InvalidValueError, RequestError
from lakestream.log.documents import Document, newest_definition
from lakestream.log.layout import COMMITS, REQUESTS, cancelled_key, number_of, pack, request_key, unpack
from lakestream.log.store import LogStore, claim
from lakestream.model import BatchCommit, FileEntry, FilePart, Part, Span, SpanProgress, Taken
from lakestream.model.codec import decode, encode, require_utc, required_time, time_to_json


@dataclass(frozen=True, slots=True)
class Requested:
    """What is to be taken at once."""

    part: Part
    rejected_by: str = ""
    """Of the quarantine: digest of the definition by which its records are unusable; empty: nobody knows."""


@dataclass(frozen=True, slots=True)
class Request:
    """Files, or a span of the stream, whose records are to be read, once more or for the first time."""

    number: int
    """From 1, without gaps."""
    requested_at: datetime
    """By the clock of who asked."""
    document: Document
    """That was given, and by which they are to be read."""
    parts: tuple[Requested, ...]
    """In the order in which they are read; all of one kind."""
    span: Span | None = None
    """In place of parts."""

    def __post_init__(self) -> None:
        require_utc("requested_at", self.requested_at)
        if self.number < 1 or bool(self.parts) == (self.span is not None):
            raise InvalidValueError(f"request {self.number}: requests are numbered from 1, and name files, or a span")
        if len({type(one.part) for one in self.parts}) > 1:
            raise InvalidValueError(f"request {self.number}: its files are of two kinds")

    def __str__(self) -> str:
        return f"{'backfill' if self.is_backfill else 'replay'} {self.number}"

    @property
    def is_backfill(self) -> bool:
        return self.span is not None or isinstance(self.parts[0].part, FilePart)

    @property
    def size(self) -> int:
        """Of how many parts it is done, as `Taken.of`; a span is one."""
        return 1 if self.span else len(self.parts)

    @property
    def records(self) -> int:
        """Of a backfill of files an estimate."""
        return sum(one.part.rows for one in self.parts)

    @property
    def file_parts(self) -> tuple[FilePart, ...]:
        """Of a backfill."""
        return tuple(one.part for one in self.parts if isinstance(one.part, FilePart))

    @property
    def files(self) -> tuple[str, ...]:
        """Their paths, each once, in order."""
        return tuple(dict.fromkeys(one.part.path for one in self.parts))

    def to_json(self) -> bytes:
        return encode(
            "replay",
            {
                "number": self.number,
                "requestedAt": time_to_json(self.requested_at),
                **self.document.to_fields(),
                **self._parts(),
            },
            version=4 if self.span else 3 if self.is_backfill else 1,
        )

    def _parts(self) -> dict[str, Any]:
        if self.span:
            return {"span": self.span.to_row()}
        if self.is_backfill:
            return {"parts": [one.part.to_row() for one in self.parts]}
        return {"files": [[*one.part.to_row(), one.rejected_by] for one in self.parts]}

    @classmethod
    def from_json(cls, content: bytes) -> Request:
        """Raises CorruptLogError if the content is not a request that `to_json` wrote."""

        def build(fields: dict[str, Any]) -> Request:
            parts = [Requested(FileEntry.from_row(row), rejected_by) for *row, rejected_by in fields.get("files", ())]
            parts += [Requested(FilePart.from_row(row)) for row in fields.get("parts", ())]
            asked = required_time(fields["requestedAt"])
            span = Span.from_row(row) if (row := fields.get("span")) else None
            return cls(fields["number"], asked, Document.from_fields(fields), tuple(parts), span)

        return decode("replay", content, build)


def read_request(store: LogStore, number: int) -> Request:
    """One request.

    Raises:
        ObjectNotFoundError: there is none of that number.
        CorruptLogError: it cannot be decoded.
    """
    key = request_key(number)
    request = unpack(key, store.get(key), Request.from_json)
    if request.number != number:
        raise CorruptLogError(f"{key} holds request {request.number}")
    return request


def requests(store: LogStore) -> Iterator[Request]:
    """All there have been, the first one first.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: as `current_request`.
    """
    for number in sorted({number_of(key) for key in store.list(REQUESTS)}):
        yield read_request(store, number)


def put_request(store: LogStore, request: Request) -> bool:
    """Put a request; False: somebody else has put one of that number first.

    Raises:
        OutcomeUnknownError: the store is unavailable; the same request may be put again.
    """
    return claim(store, request_key(request.number), pack(request.to_json()))


def cancel_request(store: LogStore, number: int, now: datetime) -> None:
    """Ask that no more be taken of a request than its driver has by the time that it sees this.

    Raises:
        OutcomeUnknownError: the store is unavailable; it may be asked again.
    """
    claim(store, cancelled_key(number), encode("cancelled", {"number": number, "cancelledAt": time_to_json(now)}))


@dataclass(frozen=True, slots=True)
class RequestState:
    """A request, and how far it is carried out."""

    request: Request
    taken: Taken
    """How far it is carried out, by the newest commit."""
    is_cancelled: bool
    """Whether somebody has asked that no more be taken."""
    waits: bool = False
    """The newest plan is by a document that does not do: that from before the edit that it was asked for with, or one
    that has rejected what comes next."""
    behind: int = 0
    """So many are taken behind it, since the table was taken back."""

    @property
    def is_done(self) -> bool:
        return self.taken.is_done

    def __str__(self) -> str:
        """In a sentence without its full stop."""
        far = self._far() if self.request.span is None else _far_in_span(self, self.request.span)
        return far + (f"; behind it {self.behind} more, since the table was taken back" if self.behind else "")

    def _far(self) -> str:
        taken, of = self.taken.parts, len(self.request.parts)
        then = _WAITS if self.waits else _GOES_ON
        if self.is_done and taken == of:
            return f"{self.request} is done"
        if self.is_done:
            return f"{self.request} was cancelled: {taken} of its {of} parts were taken"
        if self.is_cancelled:
            return f"{self.request} is cancelled at part {taken} of {of}; the writer's driver is yet to see that"
        return f"{self.request} has come to part {taken} of {of}; {then}"


_GOES_ON = "the writer's driver goes on with it"
_WAITS = (
    "the writer's driver leaves it to one that is started with the edited document, which it was asked for with; if "
    "there is to be none, `lakestream backfill cancel`"
)


def _far_in_span(state: RequestState, span: Span) -> str:
    request, taken = state.request, state.taken
    progress = taken.span or SpanProgress()
    so_far = f"{progress.records:,} records" + (f" up to {_utc(progress.reached)}" if progress.reached else "")
    if taken.is_done and taken.parts:
        return f"{request} is done: {span}, {progress.records:,} records"
    if progress.failed:
        lost = "; ".join(map(str, progress.lost))
        return (
            f"{request} has ended with {so_far}, as spec.source.kinesis.onDataLoss is fail and records of {span} may "
            f"have been trimmed before they were read: {lost}"
        )
    if taken.is_done:
        return f"{request} was cancelled: {so_far} were taken"
    if state.is_cancelled:
        return f"{request} is cancelled at {so_far}; the writer's driver is yet to see that"
    return f"{request} ({span}) has taken {so_far}; {_WAITS if state.waits else _GOES_ON}"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def newest_commit(store: LogStore) -> BatchCommit | None:
    """How far the writer is; None: it has committed nothing.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: as `current_request`.
    """
    commits = store.list(COMMITS)
    return unpack(commits[-1], store.get(commits[-1]), BatchCommit.from_json) if commits else None


def current_request(store: LogStore) -> RequestState | None:
    """The first request that is not done, or else the newest, and how far it is carried out; None: there was none.

    Others wait behind it where the table was taken back to before them.

    Raises:
        CorruptLogError: an object cannot be decoded.
        StorageError, StorageUnavailableError: of the store.
    """
    if not (keys := store.list(REQUESTS)):
        return None
    newest, last = number_of(keys[-1]), newest_commit(store)
    behind = last.taken if last else None
    number = min(newest, 1 if behind is None else behind.request + behind.is_done)
    request = read_request(store, number)
    taken = behind if behind is not None and behind.request == number else Taken(number, 0, request.size)
    waits = not taken.is_done and _waits(store, request, taken)
    return RequestState(request, taken, cancelled_key(number) in keys, waits, newest - number)


def _waits(store: LogStore, request: Request, taken: Taken) -> bool:
    instead_of, left = request.document.instead_of, request.parts[taken.parts :]
    left_by = {instead_of, left[0].rejected_by if left else ""} - {""}
    newest = newest_definition(store) if left_by else None
    return newest is not None and newest.digest in left_by


def next_number(store: LogStore) -> int:
    """The number that the next request has to have.

    Raises:
        RequestError: the one before is not done.
        CorruptLogError, StorageError, StorageUnavailableError: as `current_request`.
    """
    last = current_request(store)
    if last is not None and not last.is_done:
        raise RequestError(f"{last}. One goes on at a time: wait until it is done")
    return 1 if last is None else last.request.number + 1
