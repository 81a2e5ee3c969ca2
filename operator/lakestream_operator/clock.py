"""The time, as something that is passed on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)
