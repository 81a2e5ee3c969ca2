"""What the producer puts, and when it does no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from chaos.events import LATEST
from chaos.producer import Producer
from chaos.setting import Place, Setting, Sink

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
POISON = 2
"""Of each burst; nobody has a newer version of it."""


class Throttling:
    """Takes nothing."""

    def __init__(self) -> None:
        self.asked: set[bytes] = set()

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as Kinesis
        self.asked = {record["Data"] for record in Records}
        return {"Records": [{"ErrorCode": "ProvisionedThroughputExceededException"} for _ in Records]}


def test_what_was_throttled_until_deletes_are_forgotten_is_not_put_any_more() -> None:
    """Its key may have been deleted since by what was not throttled, and an hour of silence may lie between them."""
    client, now = Throttling(), NOON
    setting = Setting(Sink.MOR, Place.FOLDER, cluster=False, shards=1, burst=40)
    producer = Producer(client, "things", Random(1), lambda: now, lambda: 0, setting)  # type: ignore[arg-type]
    producer.burst()
    first = client.asked
    assert len(first) > 20
    now += LATEST - timedelta(seconds=1)
    producer.burst()
    assert first < client.asked
    now += timedelta(seconds=1)
    producer.burst()
    assert len(first & client.asked) <= POISON
    assert len(client.asked) > 40
