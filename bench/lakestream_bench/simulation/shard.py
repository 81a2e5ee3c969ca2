"""When Kinesis gives the records of a shard away.

GetRecords answers with up to 10 MB at once, and then not before these are paid off at the 2 MB a second that a shard
has for all its readers: "if a call to GetRecords returns 10 MB, subsequent calls made within the next 5 seconds throw
an exception" (developer guide of Kinesis Data Streams, quotas and limits).
"""

from __future__ import annotations

from lakestream_bench.simulation.streams import Scenario

READ_BYTES = 2_000_000.0
"""A second."""
ANSWER_BYTES = 10_000_000.0
"""Of one answer, at most."""
OTHERS_EVERY = 1.01
"""Trigger intervals between two batches of another writer. They move through ours, so that each run has those that ask
just before us and those that ask just behind."""


class Shard:
    """The fullest shard, which our writer reads, and the stream's others, who are always at the tip."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._paid_at = 0.0
        self._every = OTHERS_EVERY * scenario.interval
        count = scenario.consumers
        self._others = [number * scenario.interval / count for number in range(1, count)]
        """When each of them asks next."""

    def read(self, at: float, size: float) -> tuple[float, float]:
        """When the first and the last answer come to who asks at a time, and asks on until there are so many bytes."""
        first = last = self._ask(at, min(size, ANSWER_BYTES))
        while size > ANSWER_BYTES:
            size -= ANSWER_BYTES
            last = self._ask(last, min(size, ANSWER_BYTES))
        return first, last

    def _ask(self, at: float, size: float) -> float:
        given = max(at, self._paid_at)
        while self._others and (other := min(self._others)) <= given:
            self._others.remove(other)
            self._others.append(other + self._every)
            takes = readable_by_each(self._scenario, other - self._every, other)
            self._paid_at = max(self._paid_at, other) + takes / READ_BYTES
            given = max(at, self._paid_at)
        self._paid_at = given + size / READ_BYTES
        return given


def readable_by_each(scenario: Scenario, since: float, until: float) -> float:
    """Bytes of the fullest shard that a writer at the tip reads: what came, but no more than its part of the limit."""
    came = scenario.share_at(until) * (scenario.arrived_bytes(until) - scenario.arrived_bytes(since))
    return min(came, (until - since) * READ_BYTES / scenario.consumers)
