"""Asking for the records in quarantine to be read once more, by what the document says now."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

import pyarrow.parquet as pq

from lakestream.errors import RequestError
from lakestream.log import (
    Document,
    ObstoreLogStore,
    Request,
    Requested,
    next_number,
    put_request,
    rejected_files,
)
from lakestream.model import Definition, FileEntry
from lakestream.places import QUARANTINE
from lakestream.query.history import show
from lakestream.rejected import DAMAGED, damaged, footer_of
from lakestream.storage import ObjectNotFoundError, StoreSettings, open_store

_CONCURRENT_GETS = 16


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was made, and what it leaves out."""

    request: Request
    rejected_by_the_same: int
    """Records that the document's schema and transform have rejected already."""
    made_of_several: int
    """Rows that a transform has made of several records each: they are no records of the stream."""


def ask(
    log: StoreSettings, definition: Definition, now: datetime, *, deletes_known_for: timedelta | None = None
) -> Asked:
    """Ask the writer's driver to read what is in quarantine once more.

    1. The last request must be done: what it took is in the log by then.
    2. The files in quarantine are looked for.
    3. The request is put under the next number, if absent. So whatever was put in between, by whomever, is seen either
       by 2 or by 3, and no file is in two requests.

    Args:
        log: the writer's part of the checkpoint.
        definition: what the document says now.
        now: the time.
        deletes_known_for: how long the table remembers that a key was deleted; None: for ever, or it deletes nothing,
            or the user knows that no such key comes.

    Raises:
        RequestError: another goes on still; there is nothing that could come out otherwise; or a file is damaged.
        CorruptLogError, StorageError, StorageUnavailableError, OutcomeUnknownError: of the checkpoint.
    """
    store = ObstoreLogStore.at(log)
    number = next_number(store)
    batches = rejected_files(store)
    files = [(entry, batch.rejected_by) for batch in batches for entry in batch.rejects]
    changed = [(entry, by) for entry, by in files if by != definition.digest]
    looks = _look_at(log / QUARANTINE, [entry for entry, _ in changed])
    looked = list(zip(changed, looks, strict=True))
    kept = tuple(Requested(*one) for one, look in looked if look.kind is _Kind.RECORDS)
    same = sum(entry.rows for entry, by in files if by == definition.digest)
    several = sum(entry.rows for (entry, _), look in looked if look.kind is _Kind.ROWS)
    if not kept:
        raise RequestError(_why_nothing(same, several))
    if deletes_known_for is not None:
        _require_known_deletes(min(look.since for look in looks if look.since is not None), now, deletes_known_for)
    request = Request(number, now, Document.given(store, definition), kept)
    if not put_request(store, request):
        raise RequestError("somebody else has asked just now: `lakestream quarantine list` tells how far it is")
    return Asked(request, same, several)


def _require_known_deletes(since: datetime, now: datetime, known_for: timedelta) -> None:
    if since < now - known_for:
        raise RequestError(
            f"the first of these records arrived at {show(since.replace(microsecond=0))}, and the table remembers "
            f"deletes for {known_for.total_seconds() / 3600:g} h: keys that were deleted since would be there again. "
            "Give --despite-deletes if none was, or if that does no harm"
        )


def _why_nothing(same: int, several: int) -> str:
    reasons = []
    if same:
        reasons.append(
            f"{same:,} records were rejected by the very spec.filter, spec.schema, spec.transform and deleteWhen that "
            "the document has, and would be again: mend these first"
        )
    if several:
        reasons.append(f"{several:,} rows were made of several records each by a transform, and are no records")
    return "nothing to replay: " + ("; ".join(reasons) or "the quarantine is empty")


class _Kind(Enum):
    RECORDS = "records of the stream, each with its place there"
    ROWS = "rows that a transform has made of several records each, or that a backfill could not take"
    GONE = "somebody has removed the file"


@dataclass(frozen=True, slots=True)
class _Look:
    """What a file of the quarantine holds."""

    kind: _Kind
    since: datetime | None = None
    """Arrival of its first record; None: it has no records of the stream."""


def _look_at(place: StoreSettings, files: Sequence[FileEntry]) -> list[_Look]:
    with ThreadPoolExecutor(_CONCURRENT_GETS) as pool:
        return list(pool.map(lambda one: _look(place, one), files))


def _look(place: StoreSettings, entry: FileEntry) -> _Look:
    try:
        return _told(footer_of(open_store(place), place, entry))
    except ObjectNotFoundError:
        return _Look(_Kind.GONE)
    except DAMAGED as error:
        raise RequestError(damaged(place, entry.path, error)) from error


def _told(footer: pq.FileMetaData) -> _Look:
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    places, subs, arrivals = (
        [group.column(footer.schema.names.index(name)).statistics for group in groups]
        for name in ("sequence_number", "sub_sequence", "arrival")
    )
    if any(place.null_count for place in places) or all(sub.max < 0 for sub in subs):
        return _Look(_Kind.ROWS)
    return _Look(_Kind.RECORDS, min(arrival.min for arrival in arrivals))
