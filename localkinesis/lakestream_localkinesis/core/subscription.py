"""A subscription: what a shard pushes to a consumer, for five minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakestream_localkinesis.core.consumer import Consumer, ConsumerStatus
from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.shard import PAGE_RECORDS, Cursor, Page, Shard
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import ResourceInUseException, ResourceNotFoundException

LIFETIME_MS = 300_000
HELD_MS = 5_000
"""A new subscription is refused for so long, and then takes over."""
EVENT_BYTES = 1 * MIB
"""Of records in an event, if they are more than one."""
SILENCE_MS = 5_000
"""After so long an event comes without records, so that a consumer's place goes on."""


@dataclass(eq=False, slots=True)
class Subscription:
    """A consumer's subscription to a shard; times in milliseconds are those of the calls."""

    stream: Stream
    consumer: Consumer
    shard: Shard
    cursor: Cursor
    opened_ms: int
    ended: bool = False
    """Nothing more comes: the shard or the five minutes are over."""
    _told_ms: float = -math.inf
    _paid_off_ms: float = -math.inf

    def next_page(self, now_ms: int) -> Page | None:
        """What is to be pushed now, if anything. Raises what ends a subscription early."""
        self._check(now_ms)
        if now_ms >= self.opened_ms + LIFETIME_MS:
            self.ended = True
            return None
        if now_ms < self._paid_off_ms:
            return None
        horizon_ms = self.stream.horizon_ms(now_ms)
        self.shard.trim(horizon_ms)
        page = self.shard.read(self.cursor, PAGE_RECORDS, now_ms, horizon_ms, EVENT_BYTES)
        if page.following:
            self.cursor = page.following
            if not page.records and page.behind_ms == 0 and now_ms < self._told_ms + SILENCE_MS:
                return None
        self.ended = page.following is None
        self._told_ms = now_ms
        self._paid_off_ms = now_ms + 1000 * page.size / self.shard.limits.read_bytes
        self.shard.counters.outgoing_records += len(page.records)
        self.shard.counters.outgoing_bytes += page.size
        return page

    def continuation(self) -> int:
        """A sequence number that lies behind all that was pushed and before all that was not."""
        return self.shard.continuation(self.cursor)

    def _check(self, now_ms: int) -> None:
        if self.consumer.subscriptions.get(self.shard.index) is not self:
            raise ResourceInUseException(
                f"Another subscription of consumer {self.consumer.arn} has taken over shard {self.shard.id}."
            )
        if self.consumer.status(now_ms) is ConsumerStatus.DELETING:
            raise ResourceNotFoundException(f"Consumer {self.consumer.arn} not found.")
