"""What a restore undoes beside the table: requests, and what is in quarantine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakestream.log.layout import REQUESTS, cancelled_key, number_of
from lakestream.log.manifest import BatchFiles, committed_files, rejected_files
from lakestream.log.requests import Request, read_request
from lakestream.log.store import LogStore
from lakestream.model import Standing


@dataclass(frozen=True, slots=True)
class Undone:
    """Of the batches behind the one that a restore goes back to."""

    rejects: tuple[str, ...]
    """Paths of what they have in quarantine still; read again, their records are rejected again, or not."""
    requests: tuple[Request, ...]
    """Replays and backfills of which something is taken again, or for the first time."""
    cancelled: tuple[Request, ...] = ()
    """Those of which nothing more is taken, whatever of them is undone; also one that was cancelled too late, and is
    done."""


def undone_behind(store: LogStore, standing: Standing) -> Undone:
    """Look through the manifests and the requests.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: of the store.
    """
    taken = standing.taken
    first = 1 if taken is None else taken.request + taken.is_done
    keys = store.list(REQUESTS)
    numbers = sorted({number for key in keys if (number := number_of(key)) >= first})
    left, cancelled = (
        tuple(read_request(store, number) for number in numbers if (cancelled_key(number) in keys) is is_cancelled)
        for is_cancelled in (False, True)
    )
    return Undone(_paths_behind(standing.batch, rejected_files(store)), left, cancelled)


def rejects_behind(store: LogStore, batch: int) -> tuple[str, ...]:
    """Paths of all that later batches have put into quarantine, which a restore to that one forgets; what was taken out
    of it since would be there again. Requests are not looked at, one of which may be of another release.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: of the store.
    """
    return _paths_behind(batch, committed_files(store))


def _paths_behind(batch: int, batches: Iterable[BatchFiles]) -> tuple[str, ...]:
    return tuple(entry.path for one in batches if one.batch > batch for entry in one.rejects)
