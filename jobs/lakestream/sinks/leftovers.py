"""What attempts at batches have left in the folder of a table, beside what the log says that each batch wrote.

Whoever goes by the log never sees it. For those who read the folder as it is, it is removed, behind the batch and
beside those that follow: a folder with the files of months takes minutes to list.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Set

import obstore

from lakestream.errors import LakeStreamError
from lakestream.sinks.json_files import SUFFIXES
from lakestream.sinks.objects import name_pattern, remove
from lakestream.storage import StoreSettings, open_store, translated

logger = logging.getLogger(__name__)

_AGAIN, _LATEST = 60.0, 3600.0
"""Seconds after which what failed is tried again: twice as long with each further failure. Each look lists the whole
folder, and a right that is missing may be missing for months."""
_PATIENCE = 2.0
"""Seconds that the end of a driver waits for a listing."""


class Leftovers:
    """Removes them, of the newest batches: an attempt under other settings may have made other partitions, more tasks,
    or another suffix."""

    def __init__(
        self,
        store: StoreSettings,
        checkpoint: str,
        committed: Callable[[], Mapping[int, Set[str]]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look for them once at first: of an earlier driver.

        Args:
            store: where the table is.
            checkpoint: UUID of the checkpoint that writes it.
            committed: the files of the newest batches that are committed, by their paths in the table.
            monotonic: seconds.
        """
        self._store = store
        self._pattern = name_pattern(checkpoint)
        self._committed = committed
        self._monotonic = monotonic
        self._wanted = True
        self._due = monotonic()
        self._again = _AGAIN
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def expect(self) -> None:
        """There may be some of a batch that is committed by the next call of `tend`."""
        self._wanted = True
        self._due = self._monotonic()

    def tend(self) -> None:
        """Begin to look, if it is time to; between two batches."""
        if not self._wanted or self._monotonic() < self._due or (self._thread and self._thread.is_alive()):
            return
        self._wanted = False
        self._thread = threading.Thread(target=self._look, name="leftovers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, after some seconds."""
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        self._ended.set()

    def _look(self) -> None:
        try:
            committed = self._committed()
            with translated(f"list {self._store.path}"):
                for page in obstore.list(open_store(self._store)):
                    remove(self._store, [meta["path"] for meta in page if self._is_left(meta["path"], committed)])
                    if self._ended.is_set():
                        return
            self._again = _AGAIN
        except LakeStreamError as error:
            logger.warning("what earlier attempts have left of batches stays for now: %s", error)
            self._due = self._monotonic() + self._again
            self._again = min(2 * self._again, _LATEST)
            self._wanted = True

    def _is_left(self, path: str, committed: Mapping[int, Set[str]]) -> bool:
        name = self._pattern.fullmatch(path)
        if name is None or not path.endswith(SUFFIXES) or not all("=" in folder for folder in path.split("/")[:-1]):
            return False  # a batch writes to folders of partitions alone: what is elsewhere, somebody has put there
        return path not in committed.get(int(name["batch"]), {path})
