"""Waiting between attempts."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakestream.errors import (
    KinesisAnswerError,
    KinesisUnavailableError,
    LakeStreamError,
    RegistryUnavailableError,
    ThrottledError,
)
from lakestream.kinesis.port import Monotonic, Sleep

logger = logging.getLogger(__name__)

T = TypeVar("T")

TRIES_OF_NONSENSE = 4
"""Answers that make no sense, one after the other, before they are believed to stay so."""
_TOLD_AFTER, _TOLD_EVERY = 10.0, 30.0
"""Seconds in vain after which the log says so, and between two such lines, whatever calls they are of."""


@dataclass(slots=True)
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
    _told_at: float | None = None
    """When the log last said so."""

    def call(self, attempt: Callable[[], T], not_before: float = -math.inf) -> T:
        """Repeat what is throttled or not answered, until it succeeds or patience ends; nonsense, a few times only.

        Args:
            attempt: is repeated.
            not_before: time of the clock until which an attempt that is throttled will be so again.
        """
        began = self.clock()
        deadline = began + self.patience
        bound = self.first
        nonsense = 0
        while True:
            try:
                return attempt()
            except (ThrottledError, KinesisUnavailableError, RegistryUnavailableError, KinesisAnswerError) as error:
                nonsense += isinstance(error, KinesisAnswerError)
                wait = self.uniform(0, bound)
                if isinstance(error, ThrottledError) and (known := not_before - self.clock()) > 0:
                    wait = known
                if self.clock() + wait > deadline or nonsense == TRIES_OF_NONSENSE:
                    raise
                self._tell(began, error)
            self.sleep(wait)
            bound = min(2 * bound, self.most)

    def _tell(self, began: float, error: LakeStreamError) -> None:
        now = self.clock()
        if now - began >= _TOLD_AFTER and (self._told_at is None or now - self._told_at >= _TOLD_EVERY):
            self._told_at = now
            logger.warning("asked again and again for %.0f s, in vain: %s", now - began, error)
