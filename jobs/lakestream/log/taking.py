"""What a driver takes of the requests of its writer: between the batches of the stream, in portions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from lakestream.errors import LakeStreamError
from lakestream.log.layout import cancelled_key
from lakestream.log.manifest import rejected_files
from lakestream.log.requests import Request, Requested, read_request
from lakestream.log.store import LogStore
from lakestream.model import FileEntry, Part, Portion, SpanDue, SpanProgress, Taken
from lakestream.storage import ObjectNotFoundError

logger = logging.getLogger(__name__)

_BYTES = 32 * 1024 * 1024
"""Of the files that a batch takes, as stored, compressed; the first one always fits."""
_PARTS = 1_000
"""That a batch takes."""
_TASK_RECORDS, _TASK_PARTS = 5_000, 100
"""A task ends with the part that reaches the one, or with as many as the other."""

_LOOK_SECONDS = 10.0
"""Between two looks for a new request, or whether the one that goes on is cancelled. Each is one GET: 8,640 a day."""

_MEANWHILE = "a table with deleteWhen remembers all deletes until then; cancel it if that does not come"
"""Of a request that waits for what may never come."""


class Requests:
    """The requests of one writer, as its driver sees them."""

    def __init__(self, store: LogStore, epoch: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._epoch = epoch
        self._monotonic = monotonic
        self._request: Request | None = None
        self._there: frozenset[str] = frozenset()
        """Of the files of its parts those that were in quarantine…"""
        self._seen_at: tuple[int, int] | None = None
        """…when it, by its number, had come to this part. From there on nobody else has taken any."""
        self._looked, self._looked_for = -_LOOK_SECONDS, 0
        self._said = ""
        self.is_due = False
        """Whether there is a request that is not done, be it one that waits, as far as the last look tells."""

    def begin(self, behind: Taken | None) -> None:
        """Look before the first batch of a driver, or of a table that was taken back, which also has something else in
        quarantine then. `behind`: as in `next`."""
        self._seen_at = None
        self._look(_next(behind)[0])

    def next(self, behind: Taken | None, definition: str, records: int) -> Portion | SpanDue | None:
        """What the next batch takes, or the span that it takes something of; None: nothing for now.

        It does not raise for what is wrong with a request or the store: the stream goes on, and the log says why.

        Args:
            behind: how far the batch before is.
            definition: digest of what batches are made by; what it has rejected it would reject again.
            records: so many at most, but for the first part.
        """
        number, taken = _next(behind)
        if self._looks(number) and self._is_cancelled(number):
            logger.warning("request %d is cancelled: no more is taken of it", number)
            return Portion((), Taken(number, taken, taken, _closed(number, behind)))
        request = self._request
        if request is None or request.number != number:
            return None
        if not request.document.is_for(definition, self._epoch):
            self._say(f"{request} waits for a driver with the document that it was asked for with; {_MEANWHILE}")
            return None
        if request.span is not None:
            return SpanDue(number, request.span, _progress(number, behind))
        left = self._left(request, taken)
        if left is None:
            return None
        taken = len(request.parts) - len(left)
        if left and left[0].rejected_by == definition:
            self._say(
                f"{request} waits for another schema or transform: those of this driver have rejected its "
                f"records; {_MEANWHILE}"
            )
            return None
        tasks = cut([*takewhile(self._is_there, left)], definition, records)
        return Portion(tasks, Taken(number, taken + sum(map(len, tasks)), len(request.parts)))

    def _left(self, request: Request, taken: int) -> Sequence[Requested] | None:
        """The parts from the first one on that can be taken; None: nobody knows yet.

        A file of the quarantine that is there no more when its turn comes was taken by another request, or its records
        come again from the stream, since somebody has had the table taken back: they would be there twice.
        """
        if self._seen_at is None or self._seen_at[0] != request.number or taken < self._seen_at[1]:
            try:
                self._there = self._in_quarantine(request)
            except LakeStreamError as error:
                self._say(f"nobody knows what of {request} is in quarantine: {error}")
                return None
            self._seen_at = request.number, taken
        left = [*dropwhile(lambda one: not self._is_there(one), request.parts[taken:])]
        if len(left) < len(request.parts) - taken:
            self._say(f"{request}: {len(request.parts) - taken - len(left)} of its files are in quarantine no more")
        return left

    def _in_quarantine(self, request: Request) -> frozenset[str]:
        if request.is_backfill:
            return frozenset()
        listed = rejected_files(self._store)
        return frozenset(entry.path for one in listed for entry in one.rejects).intersection(request.files)

    def _is_there(self, one: Requested) -> bool:
        return not isinstance(one.part, FileEntry) or one.part.path in self._there

    def _looks(self, number: int) -> bool:
        """Look for the request, if it is time to look for anything; whether there is one, as far as is known then.

        Behind one that is done it is: several wait after a restore, and a run that ends with them must not miss one.
        """
        now = self._monotonic()
        if number == self._looked_for and now - self._looked < _LOOK_SECONDS:
            return False
        self._looked, self._looked_for = now, number
        return self._look(number)

    def _look(self, number: int) -> bool:
        """Whether there is a request of that number; one that cannot be read is one."""
        self.is_due = self._is_asked(number)
        return self.is_due

    def _is_asked(self, number: int) -> bool:
        if self._request is not None and self._request.number == number:
            return True
        try:
            self._request = read_request(self._store, number)
        except ObjectNotFoundError:
            return False
        except LakeStreamError as error:
            self._say(
                f"request {number} cannot be read, and has to wait, and a table with deleteWhen remembers all deletes "
                f"meanwhile: {error}"
            )
            return True
        what = self._request.span or f"{self._request.records} records"
        logger.info("%s: %s are taken between the batches of the stream", self._request, what)
        return True

    def _is_cancelled(self, number: int) -> bool:
        try:
            self._store.get(cancelled_key(number))
        except ObjectNotFoundError:
            return False
        except LakeStreamError as error:
            self._say(f"nobody knows whether request {number} is cancelled: {error}")
            return False
        return True

    def _say(self, text: str) -> None:
        if text != self._said:
            logger.warning("%s", text)
        self._said = text


def _next(behind: Taken | None) -> tuple[int, int]:
    """The request that a batch takes something of, and how many of its parts are taken."""
    if behind is None or behind.is_done:
        return (behind.request if behind else 0) + 1, 0
    return behind.request, behind.parts


def _progress(number: int, behind: Taken | None) -> SpanProgress | None:
    return behind.span if behind is not None and behind.request == number else None


def _closed(number: int, behind: Taken | None) -> SpanProgress | None:
    progress = _progress(number, behind)
    return progress and replace(progress, cursors=())


def cut(requested: Sequence[Requested], definition: str, most_records: int) -> tuple[tuple[Part, ...], ...]:
    """The first of these, as many as a batch takes, by task. Pure.

    Args:
        requested: the first has not been rejected by the definition.
        definition: digest; a file that it has rejected ends the batch.
        most_records: of the batch, but for the first part.
    """
    tasks: list[list[Part]] = []
    records = size = rows = 0
    for number, one in enumerate(requested[:_PARTS]):
        records, size = records + one.part.rows, size + one.part.bytes
        if number and (one.rejected_by == definition or records > most_records or size > _BYTES):
            break
        if not tasks or rows >= _TASK_RECORDS or len(tasks[-1]) >= _TASK_PARTS:
            tasks.append([])
            rows = 0
        tasks[-1].append(one.part)
        rows += one.part.rows
    return tuple(map(tuple, tasks))
