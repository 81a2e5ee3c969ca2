"""How far a benchmark is, on stderr: its figures go to stdout when it is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY_SECONDS = 15.0


class Telling:
    """Tells of each measurement when it begins, now and then while it goes on, and when it is done."""

    def __init__(self, measurements: int) -> None:
        self._measurements = measurements
        self._number = 0
        self._began = time.monotonic()

    @contextmanager
    def measuring(self, what: str) -> Iterator[None]:
        """Around one measurement."""
        self._number += 1
        began = time.monotonic()
        done = threading.Event()
        teller = threading.Thread(target=self._go_on, args=(what, began, done), name="telling", daemon=True)
        self._tell(what)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()
        self._tell(f"{what}: done in {time.monotonic() - began:.0f} s")

    def _go_on(self, what: str, began: float, done: threading.Event) -> None:
        while not done.wait(EVERY_SECONDS):
            self._tell(f"{what}: {time.monotonic() - began:.0f} s")

    def _tell(self, text: str) -> None:
        so_far = time.monotonic() - self._began
        print(f"{self._number} of {self._measurements}  {text}  ({so_far:.0f} s so far)", file=sys.stderr, flush=True)
