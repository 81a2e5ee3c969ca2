"""What earlier attempts at a batch have left in the folder of a table, beside what the log says that the batch wrote.

Whoever goes by the log never sees it. For those who read the folder as it is, it is removed, behind the batch and
beside those that follow: a folder with the files of months takes minutes to list.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import obstore

from lakestream.errors import LakeStreamError
from lakestream.model import FileEntry
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import batch_pattern, remove
from lakestream.storage import StoreSettings, open_store, translated

logger = logging.getLogger(__name__)

_AGAIN = 60.0
"""Seconds after which what failed is tried again."""
_PATIENCE = 10.0
"""Seconds that the end of a driver waits for what goes on."""


class Leftovers:
    """Removes them. An attempt under other settings may have made other partitions, more tasks or another suffix."""

    def __init__(self, store: StoreSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._waiting: dict[BatchRef, frozenset[str]] = {}
        self._due = monotonic()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def expect(self, ref: BatchRef, files: Sequence[FileEntry]) -> None:
        """Look for files of a batch other than these, once it is committed: by the next call of `tend`."""
        self._waiting[ref] = frozenset(entry.path for entry in files)

    def tend(self) -> None:
        """Begin to remove what is expected; between two batches."""
        if not self._waiting or self._monotonic() < self._due or (self._thread and self._thread.is_alive()):
            return
        self._due = self._monotonic() + _AGAIN
        self._thread = threading.Thread(target=self._remove, args=(dict(self._waiting),), name="leftovers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, after some seconds."""
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        self._ended.set()

    def _remove(self, expected: dict[BatchRef, frozenset[str]]) -> None:
        patterns = [(batch_pattern(ref), kept) for ref, kept in expected.items()]
        try:
            with translated(f"list {self._store.path}"):
                for page in obstore.list(open_store(self._store)):
                    paths = [meta["path"] for meta in page]
                    found = (
                        path for path in paths for one, kept in patterns if one.fullmatch(path) and path not in kept
                    )
                    remove(self._store, found)
                    if self._ended.is_set():
                        return
        except LakeStreamError as error:
            logger.warning("what earlier attempts have left of batches stays for now: %s", error)
            return
        for ref in expected:
            self._waiting.pop(ref, None)
