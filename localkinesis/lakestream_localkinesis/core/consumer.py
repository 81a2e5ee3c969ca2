"""Consumers with enhanced fan-out: each reads a shard at its own rate, by a subscription."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakestream_localkinesis.core.subscription import Subscription

MOST_CONSUMERS = 20
"""Of one stream."""
MOST_CREATING = 5
"""Consumers of one stream that may be CREATING at a time."""


class ConsumerStatus(StrEnum):
    """The ConsumerStatus of the API."""

    CREATING = "CREATING"
    DELETING = "DELETING"
    ACTIVE = "ACTIVE"


@dataclass(eq=False, slots=True)
class Consumer:
    """A registered consumer."""

    name: str
    arn: str
    created_ms: int
    active_ms: int
    tags: dict[str, str]
    gone_ms: int | None = None
    """When it disappears; until then it is DELETING."""
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    """The latest of each shard, by its index."""

    def is_gone(self, now_ms: int) -> bool:
        """Whether its deletion has ended."""
        return self.gone_ms is not None and self.gone_ms <= now_ms

    def status(self, now_ms: int) -> ConsumerStatus:
        """The status at a time."""
        if self.gone_ms is not None:
            return ConsumerStatus.DELETING
        return ConsumerStatus.ACTIVE if now_ms >= self.active_ms else ConsumerStatus.CREATING
