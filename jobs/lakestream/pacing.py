"""When a batch at the tip of the stream is planned while the one before is written: pure.

Planned at once, it waits for the sink with records that grow older meanwhile: where batches take longer than the
interval, each would be committed two of them after it was planned. Planned so late that it is fetched just when the
sink is free, it has newer records, and the sink need not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_LAST = 3
"""Batches that tell what the next one takes. Of few, so that one that took long by chance is soon forgotten."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What the last batches took, in seconds."""

    prepared: tuple[float, ...] = ()
    """To be planned and fetched."""
    written: tuple[float, ...] = ()
    """To be written and committed."""

    def after(self, prepared: float, written: float) -> Pace:
        """What is known after one more batch."""
        return replace(self, prepared=(*self.prepared, prepared)[-_LAST:], written=(*self.written, written)[-_LAST:])

    @property
    def spare(self) -> float:
        """How long planning may wait from when a batch goes to the sink: rather too short than too long."""
        return max(0.0, min(self.written, default=0.0) - max(self.prepared, default=0.0))
