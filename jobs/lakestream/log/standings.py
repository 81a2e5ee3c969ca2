"""Where the writer stood with a commit that the table may be taken back to.

    savepoints/20261122083213548.json.gz    with the commit of that instant, which has a savepoint

The log keeps the newest commits alone, and a savepoint may be as old as it likes. So what a commit said is put down
before its savepoint is made.
"""

from __future__ import annotations

from lakestream.log.layout import commit_key, pack, standing_key, unpack
from lakestream.log.store import LogStore, claim
from lakestream.model import BatchCommit, Standing
from lakestream.storage import ObjectNotFoundError


def keep_standing(store: LogStore, instant: str, standing: Standing) -> None:
    """Keep where the writer stands, for the savepoint of an instant; what is kept already stays.

    Raises:
        OutcomeUnknownError: the store is unavailable; it may be tried again.
    """
    claim(store, standing_key(instant), pack(standing.to_json()))


def forget_standing(store: LogStore, instant: str) -> None:
    """The savepoint is no more."""
    store.delete([standing_key(instant)])


def standing_at(store: LogStore, instant: str, batch: int) -> Standing | None:
    """Where the writer stood with the commit of a batch, which is of that instant; None: nobody knows any more.

    Raises:
        CorruptLogError: an object cannot be decoded.
        StorageError, StorageUnavailableError: of the store.
    """
    for key, parse in ((standing_key(instant), Standing.from_json), (commit_key(batch), _of_commit)):
        try:
            found = unpack(key, store.get(key), parse)
        except ObjectNotFoundError:
            continue
        if found.batch >= batch:
            return found
    return None


def _of_commit(content: bytes) -> Standing:
    return Standing.of(BatchCommit.from_json(content))
