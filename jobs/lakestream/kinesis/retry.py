"""Waiting between attempts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakestream.errors import KinesisAnswerError, KinesisUnavailableError, ThrottledError
from lakestream.kinesis.port import Monotonic, Sleep

T = TypeVar("T")

TRIES_OF_NONSENSE = 4
"""Answers that make no sense, one after the other, before they are believed to stay so."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter: many readers that were throttled together must not return together.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter". A shard's read limits count
    per second, so waits between a tenth of a second and a few seconds are what helps.
    """

    patience: float
    """Seconds after which the last error is raised."""
    sleep: Sleep
    clock: Monotonic
    uniform: Callable[[float, float], float] = random.uniform
    first: float = 0.1
    """Upper bound of the first wait, in seconds; it doubles with each attempt…"""
    most: float = 5.0
    """…up to this."""

    def call(self, attempt: Callable[[], T]) -> T:
        """Repeat what is throttled or not answered, until it succeeds or patience ends; nonsense, a few times only."""
        deadline = self.clock() + self.patience
        bound = self.first
        nonsense = 0
        while True:
            try:
                return attempt()
            except (ThrottledError, KinesisUnavailableError, KinesisAnswerError) as error:
                nonsense += isinstance(error, KinesisAnswerError)
                wait = self.uniform(0, bound)
                if self.clock() + wait > deadline or nonsense == TRIES_OF_NONSENSE:
                    raise
            self.sleep(wait)
            bound = min(2 * bound, self.most)
