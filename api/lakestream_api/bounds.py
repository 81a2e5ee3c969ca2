"""What a report can say: with more, no sum or time that follows from it would be one.

A report beyond was changed by hand. What a driver says of its own clock alone is bounded by nothing.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, Field

Count = Annotated[int, Field(ge=0, le=10**15)]
"""Of records, bytes or executors: more than there can be."""
Time = Annotated[AwareDatetime, Field(ge=datetime(1900, 1, 1, tzinfo=UTC), le=datetime(2500, 1, 1, tzinfo=UTC))]
"""A node's clock may be wrong by decades; from here any lag leads to another time that there is."""
MUCH = 1e18
"""Records, per second or in all."""
LONG = 3e9
"""Seconds."""
LONGEST = timedelta(days=366)
"""Of a trigger interval."""

M = TypeVar("M", bound=Iterable[tuple[str, float]] | None)


def bounded(seconds: M) -> M:
    """Seconds by stage as they are.

    Raises:
        ValueError: one of them is no time that a batch takes.
    """
    worst = max((one for _, one in seconds), default=0.0) if seconds is not None else 0.0
    if worst > LONG:
        raise ValueError(f"{worst:g} seconds are no time that a batch takes")
    return seconds
