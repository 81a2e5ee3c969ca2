"""When to try again. Pure: the random numbers are passed in."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter: a random share of a delay that doubles."""

    base: float = 0.1
    """Seconds; longest delay after the first attempt. Kinesis counts its limits by the second, so that
    shorter delays only meet the same full second again."""
    cap: float = 5.0
    """Seconds; no delay is longer."""
    attempts: int = 15
    """Sends of one record, at most: on average some 25 s of trying."""

    def delay(self, attempts: int, random: Random) -> float | None:
        """Seconds to wait after ``attempts`` sends of a record; None to give it up."""
        if attempts >= self.attempts:
            return None
        return random.uniform(0.0, min(self.cap, self.base * 2.0 ** (attempts - 1)))
