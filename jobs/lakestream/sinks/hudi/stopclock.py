"""How long each stage of a batch takes."""

from __future__ import annotations

import time


class StopClock:
    """Time by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """By stage."""
        self._since = time.monotonic()

    def lap(self, stage: str | None = None) -> None:
        """End a stage, and begin the next. None: what came since the last one is of no stage."""
        now = time.monotonic()
        if stage is not None:
            self.seconds[stage] = now - self._since
        self._since = now
