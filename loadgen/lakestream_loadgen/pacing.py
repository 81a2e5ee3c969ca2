"""Pacing by tokens: one token is the right to write one record now."""

from __future__ import annotations

from dataclasses import dataclass

from lakestream_loadgen.shapes import Shape


@dataclass(frozen=True)
class Part:
    """What of a run is this process's."""

    workers: int
    """Processes that share the load equally."""
    began: float
    """When the run did, by this process's monotonic clock: who joins late goes on where the shape is by then."""


class TokenMeter:
    """Tokens that a shape has released since ``joined``, seconds of the run, and nobody has taken yet.

    A load that cannot be kept up with must not come back later as one huge burst: tokens older than
    ``backlog_seconds`` are dropped and counted in ``dropped``.
    """

    def __init__(self, shape: Shape, *, joined: float = 0.0, backlog_seconds: float = 1.0) -> None:
        self._shape = shape
        self._backlog_seconds = backlog_seconds
        self._until = joined
        self._tokens = 0.0
        self.dropped = 0.0

    def advance(self, elapsed: float, share: float) -> None:
        """Release what is due at ``elapsed`` seconds of the run; ``share`` is this process's part of the load."""
        if elapsed <= self._until:
            return
        released = self._shape.records_until(elapsed) - self._shape.records_until(self._until)
        self._until = elapsed
        self._tokens += released * share
        # At least one token may wait, or a rate below one per backlog_seconds would never write.
        most = max(self._shape.records_per_second(elapsed) * share * self._backlog_seconds, 1.0)
        if self._tokens > most:
            self.dropped += self._tokens - most
            self._tokens = most

    def due(self) -> int:
        """Whole tokens that can be taken now."""
        return int(self._tokens + 1e-9)

    def take(self, most: int) -> int:
        """Take up to ``most`` tokens; returns how many."""
        taken = min(self.due(), most)
        self._tokens -= taken
        return taken


def portion(due: int, waiting: int, most: int) -> int:
    """Tokens for one of ``waiting`` users when ``due`` can be taken.

    An even share; but at least a twentieth, so that about twenty users act per tick: to give one token to
    each of very many would be fairer, but waking a user costs more than writing a record.
    """
    return min(max(due // 20, -(-due // waiting), 1), most)
