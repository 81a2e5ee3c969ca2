"""Requests to read records of the quarantine once more, and how a driver carries them out.

    replays/000000000003.json.gz     the third, with the files that it names

A request is put if absent, and never changed; there is none while the one before is not done. It names every file, so a
driver needs to look through nothing. How far it is carried out is in plans and commits (`Readmitted`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakestream.errors import CorruptLogError, InvalidValueError, LakeStreamError
from lakestream.log.layout import COMMITS, REPLAYS, number_of, pack, replay_key, unpack
from lakestream.log.store import LogStore, claim
from lakestream.model import BatchCommit, FileEntry, Readmission, Readmitted
from lakestream.model.codec import decode, encode, require_utc, required_time, time_to_json
from lakestream.storage import ObjectNotFoundError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file of the quarantine."""

    entry: FileEntry
    rejected_by: str
    """Digest of the definition by which its records are unusable; empty: nobody knows."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Files of the quarantine whose records are to be read once more."""

    number: int
    """From 1, without gaps."""
    requested_at: datetime
    """By the clock of who asked."""
    definition: str
    """Digest of the definition that was to read them: that of the document by then."""
    epoch: int
    """Of the newest driver by then; who has another definition, and is no later one, has an earlier document."""
    files: tuple[RejectedFile, ...]
    """In the order in which they are read: that of their batches."""

    def __post_init__(self) -> None:
        require_utc("requested_at", self.requested_at)
        if self.number < 1 or not self.files:
            raise InvalidValueError(f"request {self.number}: requests are numbered from 1, and name files")

    @property
    def records(self) -> int:
        return sum(one.entry.rows for one in self.files)

    def to_json(self) -> bytes:
        return encode(
            "replay",
            {
                "number": self.number,
                "requestedAt": time_to_json(self.requested_at),
                "definition": self.definition,
                "epoch": self.epoch,
                "files": [[*one.entry.to_row(), one.rejected_by] for one in self.files],
            },
        )

    @classmethod
    def from_json(cls, content: bytes) -> ReplayRequest:
        """Raises CorruptLogError if the content is not a request that `to_json` wrote."""

        def build(fields: dict[str, Any]) -> ReplayRequest:
            files = (RejectedFile(FileEntry.from_row(row), rejected_by) for *row, rejected_by in fields["files"])
            asked = required_time(fields["requestedAt"])
            return cls(fields["number"], asked, fields["definition"], fields["epoch"], tuple(files))

        return decode("replay", content, build)


def read_request(store: LogStore, number: int) -> ReplayRequest:
    """One request.

    Raises:
        ObjectNotFoundError: there is none of that number.
        CorruptLogError: it cannot be decoded.
    """
    key = replay_key(number)
    request = unpack(key, store.get(key), ReplayRequest.from_json)
    if request.number != number:
        raise CorruptLogError(f"{key} holds request {request.number}")
    return request


def ask_for_replay(store: LogStore, request: ReplayRequest) -> bool:
    """Put a request; False: somebody else has put one of that number first.

    Raises:
        OutcomeUnknownError: the store is unavailable; the same request may be put again.
    """
    return claim(store, replay_key(request.number), pack(request.to_json()))


def how_far(store: LogStore) -> Readmitted | None:
    """How far the newest request is carried out; None: there was none.

    Raises:
        CorruptLogError: an object cannot be decoded.
        StorageError, StorageUnavailableError: of the store.
    """
    if not (requests := store.list(REPLAYS)):
        return None
    number = number_of(requests[-1])
    if commits := store.list(COMMITS):
        far = unpack(commits[-1], store.get(commits[-1]), BatchCommit.from_json).readmitted
        if far is not None and far.request >= number:
            return far
    return Readmitted(number, 0, len(read_request(store, number).files))


_BYTES = 32 * 1024 * 1024
"""Of the files that a batch takes, as stored, compressed; the first one always fits."""
_FILES = 1_000
"""That a batch takes."""
_TASK_RECORDS, _TASK_FILES = 5_000, 100
"""A task ends with the file that reaches the one, or with as many as the other."""

_LOOK_SECONDS = 10.0
"""Between two looks for a new request. Each is one GET: 8,640 a day."""


class Replays:
    """The requests of one writer, as its driver sees them."""

    def __init__(self, store: LogStore, epoch: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._epoch = epoch
        self._monotonic = monotonic
        self._request: ReplayRequest | None = None
        self._looked = -_LOOK_SECONDS
        self._said = ""

    def next(self, behind: Readmitted | None, definition: str, records: int) -> Readmission | None:
        """What the next batch takes; None: nothing for now.

        It does not raise for what is wrong with a request or the store: the stream goes on, and the log says why.

        Args:
            behind: how far the batch before is.
            definition: digest of what batches are made by; what it has rejected it would reject again.
            records: so many at most, but for the first file.
        """
        if behind is None or behind.is_done:
            number, taken = (behind.request if behind else 0) + 1, 0
        else:
            number, taken = behind.request, behind.files
        request = self._request if self._request and self._request.number == number else self._look(number)
        if request is None:
            return None
        if definition != request.definition and self._epoch <= request.epoch:
            self._say(f"replay {number} waits for a driver with the document that it was asked for with")
            return None
        if request.files[taken].rejected_by == definition:
            self._say(
                f"replay {number} waits for another schema or transform: those of this driver have rejected its records"
            )
            return None
        tasks = cut(request.files[taken:], definition, records)
        return Readmission(tasks, Readmitted(number, taken + sum(map(len, tasks)), len(request.files)))

    def _look(self, number: int) -> ReplayRequest | None:
        now = self._monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return None
        self._looked = now
        try:
            self._request = read_request(self._store, number)
        except ObjectNotFoundError:
            return None
        except LakeStreamError as error:
            self._say(f"replay {number} cannot be read, and has to wait: {error}")
            return None
        logger.info("replay %d: %d records of the quarantine are read once more", number, self._request.records)
        return self._request

    def _say(self, text: str) -> None:
        if text != self._said:
            logger.warning("%s", text)
        self._said = text


def cut(files: Sequence[RejectedFile], definition: str, most_records: int) -> tuple[tuple[FileEntry, ...], ...]:
    """The first of these files, as many as a batch takes, by task. Pure.

    Args:
        files: the first has not been rejected by the definition.
        definition: digest; a file that it has rejected ends the batch.
        most_records: of the batch, but for the first file.
    """
    tasks: list[list[FileEntry]] = []
    records = size = rows = 0
    for number, one in enumerate(files[:_FILES]):
        records, size = records + one.entry.rows, size + one.entry.bytes
        if number and (one.rejected_by == definition or records > most_records or size > _BYTES):
            break
        if not tasks or rows >= _TASK_RECORDS or len(tasks[-1]) >= _TASK_FILES:
            tasks.append([])
            rows = 0
        tasks[-1].append(one.entry)
        rows += one.entry.rows
    return tuple(map(tuple, tasks))
