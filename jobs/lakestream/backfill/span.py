"""Asking the driver of a writer to read a span of its stream once more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakestream.errors import RequestError, SettingsError
from lakestream.kinesis import StreamSummary
from lakestream.kinesis.lineage import trim_at
from lakestream.log import (
    Document,
    LogStore,
    Request,
    current_request,
    newest_commit,
    next_number,
    put_request,
    requests,
    require_stream,
)
from lakestream.model import Definition, Span
from lakestream.query.history import show
from lakestream.query.moments import Commit, parse_moment

_TRIM_MARGIN = timedelta(minutes=5)
"""What is so near to be trimmed is not proposed: a driver has to be started, and to read it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is accepted, by table and user."""

    keeps_every_row: bool
    """What comes twice is there twice."""
    again: bool
    """It may."""
    may_lose: bool
    """`onDataLoss` is skip."""
    deletes_known_for: timedelta | None
    """How long the table remembers that a key was deleted; None: for ever, or that does not matter."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was made."""

    request: Request
    span: Span
    """Of the request."""
    left_out: datetime | None
    """From here on the writer has read the stream itself; None: nothing of what was asked for is left out."""
    twice_from: datetime | None
    """From here on it has, and the table will have twice what is asked for; None: nothing of it, or nobody knows."""
    trimmed_before: datetime | None
    """What arrived before this may be gone, and is skipped then; None: all of it is there."""


def span_of(since: str, until: str, now: datetime) -> Span:
    """The span that somebody means.

    Args:
        since: as typed for `--from`.
        until: as typed for `--to`.
        now: Kinesis time.

    Raises:
        RequestError: one of them is no time, lies in the future, or they are the wrong way round.
    """
    start, end = (_time(name, text, now) for name, text in (("--from", since), ("--to", until)))
    if end > now:
        raise RequestError(
            f"--to {until} is {show(end)}, and in Kinesis it is {show(now)}: give a time that has passed"
        )
    if not start < end:
        raise RequestError(f"--from {since} is {show(start)}, and not before --to {until}, which is {show(end)}")
    return Span(start, end)


def require_times(since: str, until: str) -> None:
    """Check that both are times, before anybody is asked what time it is in Kinesis.

    Raises:
        RequestError: one of them is not.
    """
    for name, text in (("--from", since), ("--to", until)):
        _time(name, text, datetime.now(UTC))


def _time(name: str, text: str, now: datetime) -> datetime:
    try:
        moment = parse_moment(text, now)
    except SettingsError as error:
        raise RequestError(f"{name}: {error}") from error
    if isinstance(moment, Commit):
        raise RequestError(f"{name} {text} names a commit of the table: give a time at which records arrived")
    try:
        return _as_kinesis_takes(moment)
    except ValueError as error:  # rounded up, the last moment of the year 9999 is none
        raise RequestError(f"{name} {text}: {error}") from error


def _as_kinesis_takes(time: datetime) -> datetime:
    """To the millisecond, as iterators begin at times and records arrive: so what ends there and what begins touch."""
    return datetime.fromtimestamp(round(time.timestamp(), 3), UTC)


def ask_for_span(
    store: LogStore, definition: Definition, span: Span, stream: StreamSummary, now: datetime, terms: Terms
) -> Asked:
    """Ask the writer's driver to read a span of its stream once more.

    Args:
        store: the writer's part of the checkpoint.
        definition: what the document says now.
        span: has passed.
        stream: what Kinesis says of the stream.
        now: Kinesis time.
        terms: what is accepted.

    Raises:
        RequestError: another request goes on; rows would be there twice, or again; records are gone.
        IdentityMismatchError: the checkpoint is of another stream.
        CorruptLogError, StorageError, StorageUnavailableError, OutcomeUnknownError: of the checkpoint.
    """
    require_stream(store, stream.arn, stream.created_at)
    number = next_number(store)
    last = newest_commit(store)
    asked, read_from = span, last.read_from if last else None
    if terms.keeps_every_row and not terms.again:
        span = unread_of(asked, read_from)
        _require_not_taken(store, span, "give --again" + (f" with --to {typed(span.until)}" if span != asked else ""))
    trim = trim_at(last.trim if last else None, now, stream.retention)
    floor = trim.floor if max(span.since, stream.created_at) < trim.floor else None
    if floor is not None:
        _require_there(span, floor, stream.retention, may_lose=terms.may_lose)
    if terms.deletes_known_for is not None:
        _require_known_deletes(span, now, terms.deletes_known_for)
    request = Request(number, now, Document.given(store, definition), (), span)
    if not put_request(store, request):
        raise RequestError("somebody else has asked just now: `lakestream backfill status` tells how far it is")
    twice_from = _twice_from(span, read_from) if terms.keeps_every_row else None
    return Asked(request, span, span.until if span != asked else None, twice_from, floor)


def unread_of(span: Span, read_from: datetime | None) -> Span:
    """What of a span the writer has not read: all that lies before where it began, in each shard, and nothing behind.

    Args:
        span: what is asked for.
        read_from: as in commits.

    Raises:
        RequestError: nobody knows, or there is nothing.
    """
    if read_from is None:
        raise RequestError(
            "the table keeps every row, and nobody knows from where on the writer has read the stream: it has "
            "committed nothing yet, or an earlier release has begun its checkpoint. What it has read would be there "
            "twice. If none of the span is in the table, or that is right, give --again"
        )
    read_from = _as_kinesis_takes(read_from)
    if span.until <= read_from:
        return span
    if span.since >= read_from:
        raise RequestError(
            f"the writer has read the stream from {show(read_from)} on, so all of the span, and the table keeps every "
            "row: it would be there twice. If that is right, as the table was restored to before it, give --again"
        )
    return replace(span, until=read_from)


def _twice_from(span: Span, read_from: datetime | None) -> datetime | None:
    """From where on the writer has read what is asked for; None: nothing of it, or nobody knows."""
    if read_from is None or span.until <= (known := _as_kinesis_takes(read_from)):
        return None
    return max(span.since, known)


def typed(time: datetime) -> str:
    """As it is typed for `--to`: to the millisecond, so that nothing is left out in between."""
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds').removesuffix('.000')}Z"


def _require_not_taken(store: LogStore, span: Span, advice: str) -> None:
    newest = current_request(store)
    for request in requests(store):
        if request.span is None or not request.span.overlaps(span):
            continue
        what = f"{request} of {show(request.requested_at)} was for {request.span}"
        if newest is None or newest.request.number != request.number:
            raise RequestError(
                f"{what}, and nobody knows any more what it has taken: the table keeps every row, and has that twice "
                f"then. If it was cancelled before it took anything, or if that is right, {advice}"
            )
        if newest.taken.span is not None and newest.taken.span.records:
            raise RequestError(
                f"{what} ({newest}), and the table keeps every row: what it has taken of the span would be there "
                f"twice. If that is right, {advice}"
            )


def _require_there(span: Span, floor: datetime, retention: timedelta, *, may_lose: bool) -> None:
    keeps = f"the stream keeps records for {retention.total_seconds() / 3600:g} h"
    if span.until <= floor:
        raise RequestError(f"{keeps}: of the span {span} none may be left")
    if not may_lose:
        best = (floor + _TRIM_MARGIN + timedelta(minutes=1)).replace(second=0, microsecond=0)
        raise RequestError(
            f"{keeps}: what arrived before {show(floor)} may be gone. Give --from {best:%Y-%m-%dT%H:%MZ}; or, for all "
            "that is left, set spec.source.kinesis.onDataLoss: skip, and start the writer with that"
        )


def _require_known_deletes(span: Span, now: datetime, known_for: timedelta) -> None:
    hours = f"{known_for.total_seconds() / 3600:g} h"
    if span.since < now - known_for:
        raise RequestError(
            f"the table remembers deletes for {hours}: keys that were deleted before, and have an earlier version in "
            "the span, would be there again. Give --despite-deletes if there are none, if the span has the deletes as "
            f"well (it ends within the last {hours}), or if that does no harm"
        )
