"""What a restore undoes beside the table: requests, and what is in quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from lakestream.log.layout import REQUESTS, cancelled_key, number_of
from lakestream.log.manifest import committed_files
from lakestream.log.requests import Request, read_request
from lakestream.log.store import LogStore
from lakestream.model import Standing


@dataclass(frozen=True, slots=True)
class Undone:
    """Of the batches behind the one that a restore goes back to."""

    rejects: tuple[str, ...]
    """Paths of what they have in quarantine; read again, their records are rejected again, or not."""
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
    return Undone(rejects_behind(store, standing.batch), left, cancelled)


def rejects_behind(store: LogStore, batch: int) -> tuple[str, ...]:
    """As `Undone.rejects`: all that a restore to that batch needs. Of a request that it cannot read it needs nothing.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: of the store.
    """
    return tuple(entry.path for one in committed_files(store) if one.batch > batch for entry in one.rejects)
