"""What happens to a stream, whoever reads it: producers, resharding, time and expired iterators."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from lakestream.errors import ExpiredIteratorError
from lakestream.testing.fake_kinesis import FakeKinesis

LATENESS = timedelta(milliseconds=1500)
"""Of records, at most."""
gaps = st.sampled_from([0.0, 0.001, 0.1, 0.3, 1.0, 15.0, 70.0, 400.0])
"""Seconds."""


class StreamMachine(RuleBasedStateMachine):
    """Rules of the stream. Who inherits them begins it, and says how late records may come."""

    stream: FakeKinesis
    lateness: timedelta
    """Before the newest record of the shard, at most."""

    @rule(shard=st.integers(0, 99), count=st.integers(1, 5), late=st.integers(0, LATENESS // timedelta(milliseconds=1)))
    def put(self, shard: int, count: int, late: int) -> None:
        shards = self.stream.open_shards()
        for _ in range(count):
            self.stream.put(shards[shard % len(shards)], b"x", late=min(timedelta(milliseconds=late), self.lateness))

    @rule(by=gaps)
    def pass_time(self, by: float) -> None:
        self.stream.sleep(by)

    @rule(shard=st.integers(0, 99))
    @precondition(lambda self: len(self.stream.shards) < 12)
    def split(self, shard: int) -> None:
        shards = self.stream.open_shards()
        self.stream.split(shards[shard % len(shards)])

    @rule()
    @precondition(lambda self: len(self.stream.open_shards()) > 1)
    def merge(self) -> None:
        one, other = self.stream.open_shards()[:2]
        self.stream.merge(one, other)

    @rule(pages=st.lists(st.sampled_from([0, 1, 2, 5, -1, -2]), min_size=1, max_size=4), page_size=st.integers(1, 3))
    def push(self, pages: list[int], page_size: int) -> None:
        """Readers are pushed some pages, where they are not refused, before they have to ask."""
        self.stream.pushes.extend(pages)
        self.stream.page_size = page_size

    @rule(calls=st.integers(0, 3))
    @precondition(lambda self: sum(failure is not None for failure in self.stream.failures) < 3)
    def expire_an_iterator(self, calls: int) -> None:
        self.stream.failures.extend([None] * calls)
        self.stream.failures.append(ExpiredIteratorError("ExpiredIteratorException"))
