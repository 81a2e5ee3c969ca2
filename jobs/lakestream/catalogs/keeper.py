"""The thread that keeps a catalog, beside the batches: none of them waits for it, and it fails none."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Protocol

from lakestream.model import ServiceStatus, in_a_line

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0
"""Seconds between tries while a catalog cannot be reached: each as long again as all before it."""

_LAST_WORDS = 10.0
"""Seconds that an end waits for what is under way: the next driver lists the partitions."""


class Catalog(Protocol):
    """A catalog that tables are kept in."""

    def keep(self, partitions: Set[str]) -> None:
        """Give the tables their columns, and at least these partitions; changes nothing that is as it should be.

        Args:
            partitions: paths.

        Raises:
            Exception: of any kind; some of it may have been done.
        """
        ...

    def give_up(self) -> None:
        """Begin no further call, from any thread: another driver may keep these tables by now."""
        ...


class CatalogKeeper:
    """Tells a catalog of a table's columns once, and of each partition when it first appears."""

    def __init__(
        self,
        catalog: Catalog,
        partitions: Callable[[], Iterable[str]],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        first_pause: float = _FIRST_PAUSE,
        last_words: float = _LAST_WORDS,
    ) -> None:
        """Start the thread.

        Args:
            catalog: what to tell.
            partitions: lists those of the table; asked once, for what earlier drivers have written.
            now: the driver's clock.
            first_pause: seconds between a failure and the next try, of which later ones are multiples.
            last_words: seconds that `close` waits.
        """
        self._catalog = catalog
        self._partitions = partitions
        self._now = now
        self._first_pause = first_pause
        self._last_words = last_words
        self._changed = threading.Condition()
        self._status = ServiceStatus("catalog")
        self._wanted: set[str] | None = None
        self._kept: set[str] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="catalog", daemon=True)
        self._thread.start()

    @property
    def status(self) -> ServiceStatus:
        """How it goes; `behind` counts commits with partitions that the catalog does not have yet."""
        with self._changed:
            return self._status

    def committed(self, partitions: Iterable[str]) -> None:
        """Note the partitions of a commit."""
        with self._changed:
            new = {path for path in partitions if path} - self._kept
            if not new:
                return
            self._wanted = (self._wanted or set()) | new
            self._status = replace(self._status, behind=self._status.behind + 1)
            self._changed.notify_all()

    def close(self) -> None:
        """Finish what there is to do, unless that fails or takes long, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(self._last_words)
        if self._thread.is_alive():
            self._catalog.give_up()
            logger.warning("the catalog is not up to date, and takes long; the next driver goes on with it")

    def _run(self) -> None:
        # A table is not listed anew whenever its catalog is tried again.
        if not self._until_kept(cache(lambda: set(self._partitions()))):
            return
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._wanted)
                if not self._wanted:
                    return
            if not self._until_kept(set):
                return

    def _until_kept(self, more: Callable[[], Set[str]]) -> bool:
        """Try until it succeeds; False: it failed, and it is time to end."""
        pause = self._first_pause
        while not self._attempt(more):
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, timeout=pause):
                    return False
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _attempt(self, more: Callable[[], Set[str]]) -> bool:
        began = time.monotonic()
        with self._changed:
            wanted, behind = set(self._wanted or ()), self._status.behind
        try:
            wanted |= more()
            self._catalog.keep(wanted)
        except Exception as error:
            logger.warning("the catalog is not up to date; ingestion goes on: %s", in_a_line(error), exc_info=error)
            with self._changed:
                self._status = self._status.failed_again(error, self._now())
            return False
        with self._changed:
            self._kept |= wanted
            self._wanted = (self._wanted or set()) - self._kept
            behind = self._status.behind - behind if self._wanted else 0
            self._status = self._status.completed_again(time.monotonic() - began, behind)
        return True
