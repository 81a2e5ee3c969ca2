"""A KPL on a stream that is resharded between its attempts: what is put is read, and no copy more than need be.

The producer is modelled on retrier.cc and shard_map.cc of the KPL 1.0. It groups user records by the shard that its map
predicts, and the aggregate goes where the first one's key is. If that is another shard, it sends those again that do
not belong there; or all, if its map does not have that shard by the time of the answer.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis import KinesisSettings, Planner, PlannerSettings, RangeReader
from lakestream.model import BatchPlan, Finding
from lakestream.testing.fake_kinesis import FakeKinesis
from lakestream.testing.kpl import aggregate


def hash_key(key: str) -> int:
    return int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(), 16)


@dataclass
class Producer:
    """Sends user records named by numbers, each with a key of its own, until all are where they belong."""

    stream: FakeKinesis
    shard_map: dict[str, tuple[int, int]] = field(default_factory=dict)
    succeeded: set[int] = field(default_factory=set)
    misplaced: int = 0
    """Copies in shards to which they do not belong."""
    copies: Counter[int] = field(default_factory=Counter)
    """Of each record, those where it belongs."""

    def refresh(self) -> None:
        self.shard_map = {s: self.range_of(s) for s in self.stream.open_shards()}

    def range_of(self, shard_id: str) -> tuple[int, int]:
        keys = self.stream.shards[shard_id].hash_keys
        return keys.first, keys.last

    def put(self, numbers: list[int], *, refreshed_before_the_answer: bool) -> None:
        """One attempt; whatever has to be sent again is, with a map that is up to date."""
        groups: dict[str, list[int]] = defaultdict(list)
        for number in numbers:
            groups[self._holding(hash_key(f"k{number}"), self.shard_map)].append(number)
        open_shards = {s: self.range_of(s) for s in self.stream.open_shards()}
        again: list[int] = []
        if refreshed_before_the_answer:
            self.refresh()
        for predicted, group in groups.items():
            actual = self._holding(hash_key(f"k{group[0]}"), open_shards)
            self.stream.put(actual, aggregate([(f"k{number}", None, b"%d" % number) for number in group]))
            low, high = open_shards[actual]
            fits = [low <= hash_key(f"k{number}") <= high for number in group]
            self.misplaced += fits.count(False)
            self.copies.update(number for number, fit in zip(group, fits, strict=True) if fit)
            for number, fit in zip(group, fits, strict=True):
                if actual == predicted or (actual in self.shard_map and fit):
                    self.succeeded.add(number)
                else:
                    again.append(number)
        if again:
            self.refresh()
            self.put(again, refreshed_before_the_answer=False)

    @staticmethod
    def _holding(key: int, shards: dict[str, tuple[int, int]]) -> str:
        return next(shard_id for shard_id, (low, high) in shards.items() if low <= key <= high)


def reshard(stream: FakeKinesis, choice: int) -> None:
    shards = sorted(stream.open_shards(), key=lambda shard_id: stream.shards[shard_id].hash_keys.first)
    if choice % 2 and len(shards) > 1:
        stream.merge(*list(pairwise(shards))[choice // 2 % (len(shards) - 1)])
    elif len(stream.shards) < 12:
        stream.split(shards[choice // 2 % len(shards)])


def read_all(stream: FakeKinesis, *, drop_misplaced: bool) -> tuple[list[int], int]:
    """Batch by batch, each twice: from the plan, and from what the log keeps of it. And how many were misplaced."""
    settings = PlannerSettings("TRIM_HORIZON", drop_misplaced=drop_misplaced, threads=1)
    reader = RangeReader(stream, KinesisSettings("fake", "eu-west-1"), sleep=stream.sleep, monotonic=stream.monotonic)

    def read(plan: BatchPlan) -> tuple[list[int], int]:
        parts = [part for piece in plan.ranges for part in reader.read(piece)]
        batches = [part for part in parts if not isinstance(part, Finding)]
        numbers = [int(data) for batch in batches for data in batch.column("data").to_pylist()]
        return numbers, sum(part.misplaced for part in parts if isinstance(part, Finding))

    numbers: list[int] = []
    misplaced = 0
    plan: BatchPlan | None = None
    with Planner(stream, settings, slots=lambda: 2, sleep=stream.sleep) as planner:
        until = stream.time
        while planner.caught_up_to is None or planner.caught_up_to <= until:
            stream.sleep(1)
            cursors = plan.cursors if plan else ()
            following = planner.plan(batch=plan.batch + 1 if plan else 0, epoch=1, cursors=cursors)
            if following is not None:
                plan = following
                found = read(plan)
                assert found == read(BatchPlan.from_json(plan.to_json())), "a replay decides otherwise"
                numbers.extend(found[0])
                misplaced += found[1]
    return numbers, misplaced


@given(
    shards=st.integers(1, 3),
    steps=st.lists(
        st.tuples(st.integers(1, 8), st.lists(st.integers(0, 9), max_size=2), st.booleans()), min_size=1, max_size=6
    ),
    places_by_key=st.booleans(),
    drop=st.booleans(),
)
def test_what_was_put_is_read_without_the_copies_in_wrong_shards(
    shards: int, steps: list[tuple[int, list[int], bool]], places_by_key: bool, drop: bool
) -> None:
    stream = FakeKinesis(shards)
    stream.places_by_key = places_by_key
    producer = Producer(stream)
    producer.refresh()
    sent = 0
    for count, changes, is_refreshed in steps:
        for change in changes:
            reshard(stream, change)
        producer.put(list(range(sent, sent + count)), refreshed_before_the_answer=is_refreshed)
        sent += count
        stream.sleep(1)
    assert producer.succeeded == set(range(sent)), "the model gives up none"
    numbers, misplaced = read_all(stream, drop_misplaced=drop)
    assert set(numbers) == producer.succeeded
    if drop and places_by_key:
        assert Counter(numbers) == producer.copies
        assert misplaced == producer.misplaced
    else:
        assert len(numbers) == producer.copies.total() + producer.misplaced
        assert misplaced == 0


def test_the_copies_that_the_rule_is_for() -> None:
    """Both answers of the KPL: to drop the whole aggregate, as KCL does, would lose record 0 in the second."""
    for known, wanted in ((False, {0: 2, 1: 1}), (True, {0: 1, 1: 1})):
        stream = FakeKinesis(1)
        producer = Producer(stream)
        producer.refresh()
        stream.split(stream.open_shards()[0])
        # Their keys lie in the two halves.
        assert hash_key("k0") < 2**127 <= hash_key("k1")
        producer.put([0, 1], refreshed_before_the_answer=known)
        numbers, misplaced = read_all(stream, drop_misplaced=True)
        assert (Counter(numbers), misplaced) == (Counter(wanted), 1)
