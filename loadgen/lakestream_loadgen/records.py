"""What a user hands to the producer."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One Kinesis record. A NamedTuple, for its cost: a quarter of a frozen dataclass's to build."""

    event_id: str
    """Unique over all producers; the audit's key."""
    partition_key: str
    data: bytes
    malformed: bool = False
    """True when no reader can parse it: the audit expects it in quarantine."""
    group: str | None = None
    """Records of one group describe one thing (an order)."""
    last: bool = False
    """True: sent only when every earlier record of its group is settled. A sink that forgets deleted
    keys would otherwise bring an order back to life when a delayed update arrives after its delete."""
