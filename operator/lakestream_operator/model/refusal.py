"""What could not be done: it is waited out, and told. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from lakestream_operator.errors import NameTakenError, RetryLaterError

FIRST_RETRY = timedelta(seconds=1)
LAST_RETRY = timedelta(minutes=1)
MOST_ASKED = timedelta(minutes=2)
"""That anybody is left alone for if he asks for it: a proxy asks for an hour, and is well again after a minute."""

_TOLD = 2
"""Refusals in a row from which on it is told: a single one may be a race, which the next look resolves."""
_LASTING = 7
"""The same until it has lasted for a minute, and what else there is is done."""


def pause_after(failures: int, chance: float, at_least: timedelta | None = None) -> timedelta:
    """How long to wait after so many failures in a row.

    Args:
        failures: one or more.
        chance: from 0 to 1: up to half as long again, so that all that failed at once does not come back at once.
        at_least: what the API server, or a proxy before it, asks for; it is given so much up to `MOST_ASKED`.
    """
    doubled = min(FIRST_RETRY * (1 << min(failures - 1, 10)), LAST_RETRY)
    asked = min(at_least or timedelta(), MOST_ASKED)
    return max(doubled, asked) * (1 + chance / 2)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Actions of one writer, or on the LakeStream itself, that the API server did not let be."""

    reason: str
    """In one word."""
    message: str
    """The API server's own sentence, or whose the name is that we need."""
    about: tuple[int, str]
    """The generation and the restart that were asked for: with others it is tried at once."""
    tries: int
    """How often in a row."""
    at: datetime
    """When it was counted."""
    retry_at: datetime

    @classmethod
    def of(cls, error: Exception, about: tuple[int, str], before: Self | None, now: datetime, chance: float) -> Self:
        """Count one.

        Args:
            error: what was said.
            about: see above.
            before: the last one, if nothing has succeeded since.
            now: the time.
            chance: see `pause_after`.
        """
        tries = before.tries + 1 if before and before.about == about else 1
        after = error.after if isinstance(error, RetryLaterError) else None
        return cls(
            reason="NameTaken" if isinstance(error, NameTakenError) else "ApiRefused",
            message=f"{error}".rstrip(".") + ". The operator tries again, a minute apart at most.",
            about=about,
            tries=tries,
            at=now,
            retry_at=now + pause_after(tries, chance, after),
        )

    @property
    def told(self) -> bool:
        """Whether it is worth a person's attention."""
        return self.tries >= _TOLD

    @property
    def lasts(self) -> bool:
        """Whether it is not waited out any more where there is another way."""
        return self.tries >= _LASTING

    @property
    def is_new(self) -> bool:
        """Whether it is told for the first time."""
        return self.tries == _TOLD

    def holds(self, about: tuple[int, str], now: datetime) -> bool:
        """Whether nothing is to be tried yet; one that is yet to come was counted before the clock was put back."""
        return self.about == about and self.at <= now < self.retry_at
