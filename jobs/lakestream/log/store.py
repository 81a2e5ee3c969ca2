"""The object-store port of the log, and its one adapter, over obstore.

The log needs four calls. `create` is the one that everything rests on: of any number of processes
that create one key, exactly one succeeds, and nobody ever sees half of an object.

- Folder: obstore writes `<key>#<n>` beside the key and hard-links it to the key, which fails if the
  key exists; listings leave `#` names out. A process killed in between leaves at most such a file.
  Nothing is fsynced (nor do Spark and Hudi on a folder): a folder survives kill -9 of any process,
  not the loss of power. S3 survives both.
- S3: a PUT with `If-None-Match: *`. AWS has it since 2024; of S3-compatible servers only those that
  keep it under concurrency are fit (the contract suite races sixteen writers to find out).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, Self

import obstore
from obstore.store import MemoryStore

from lakestream.errors import OutcomeUnknownError
from lakestream.storage import (
    LakeStore,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageUnavailableError,
    StoreSettings,
    open_store,
    translated,
)


class LogStore(Protocol):
    """Objects by key. Keys are relative to the log's own folder, with `/` between segments."""

    def create(self, key: str, body: bytes) -> None:
        """Write an object that does not exist yet, whole and durable, or not at all.

        Raises:
            ObjectExistsError: the key is taken.
            StorageUnavailableError: it may have been written, or not.
        """
        ...

    def get(self, key: str) -> bytes:
        """Read an object.

        Raises:
            ObjectNotFoundError: there is none.
        """
        ...

    def list(self, folder: str, after: str | None = None) -> list[str]:
        """Keys below `folder`, ascending; with `after`, only keys greater than that one."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that do not exist are no error."""
        ...


class ObstoreLogStore:
    """A `LogStore` over a folder, S3, or obstore's memory."""

    def __init__(self, store: LakeStore | MemoryStore) -> None:
        self._store = store

    @classmethod
    def at(cls, place: StoreSettings) -> Self:
        """The one at a place."""
        return cls(open_store(place))

    def create(self, key: str, body: bytes) -> None:
        with translated(f"create {key}"):
            obstore.put(self._store, key, body, mode="create")

    def get(self, key: str) -> bytes:
        with translated(f"read {key}"):
            return bytes(obstore.get(self._store, key).bytes())

    def list(self, folder: str, after: str | None = None) -> list[str]:
        with translated(f"list {folder}"):
            found = (meta["path"] for meta in obstore.list(self._store, folder, offset=after).collect())
            # S3's console and Hadoop leave an object of the folder's own name, also in a copy of a log.
            return sorted(path for path in found if path not in ("", folder))

    def delete(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        try:
            with translated(f"delete {len(keys)} objects from {keys[0]}"):
                obstore.delete(self._store, keys)
        except ObjectNotFoundError:
            # A folder, unlike S3, complains of the first one missing, and says nothing of the others.
            for key in keys:
                with suppress(ObjectNotFoundError), translated(f"delete {key}"):
                    obstore.delete(self._store, key)


_ATTEMPTS = 3
"""On top of obstore's retries, which leave a PUT alone once it has timed out."""


def claim(store: LogStore, key: str, body: bytes) -> bool:
    """Create an object; True if it now holds `body`, False if someone else's content was there first.

    A request whose answer was lost may have taken effect, so an object that is there already and
    equals `body` is ours: bodies that are claimed name their author (epoch or owner).

    S3 also says that a key is taken (409) while another request for it is under way, which may come to nothing: then
    there is no object, and it is created again.

    Raises:
        OutcomeUnknownError: the store stayed unavailable; claiming the same body again is safe.
    """
    cause: StorageUnavailableError | ObjectExistsError | None = None
    for _ in range(_ATTEMPTS):
        try:
            store.create(key, body)
            return True
        except ObjectExistsError as error:
            if (found := _content(store, key)) is not None:
                return found == body
            cause = error
        except StorageUnavailableError as error:
            cause = error
    raise OutcomeUnknownError(f"{key} may or may not have been written; start again to find out: {cause}") from cause


def _content(store: LogStore, key: str) -> bytes | None:
    try:
        return store.get(key)
    except ObjectNotFoundError:
        return None
