"""Parcels, batches and groups, by an injected time."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.kinesis.batching import Accumulator, BatchLimits, Parcel, parcels
from lakestream_loadgen.kinesis.groups import Groups
from lakestream_loadgen.records import Record


class Nobody:
    def settled(self, records: int, *, acknowledged: bool) -> None:
        raise AssertionError("not asked here")


def parcel(*sizes: int) -> Parcel:
    return Parcel([Record(f"e{index}", "", b"x" * size) for index, size in enumerate(sizes)], Nobody(), 0.0)


def test_a_batch_waits_for_its_linger_time() -> None:
    queue = Accumulator(BatchLimits(linger=0.05))
    assert queue.next_due(1.0) is None
    assert queue.add(parcel(10), 1.0)
    assert not queue.add(parcel(10), 1.02)
    assert queue.next_due(1.02) == 1.05
    assert queue.take(1.04) == []
    assert [len(part) for part in queue.take(1.05)] == [1, 1]
    assert queue.next_due(1.05) is None


def test_a_full_batch_leaves_at_once() -> None:
    queue = Accumulator(BatchLimits(linger=10.0, records=4))
    queue.add(parcel(1, 1, 1), 1.0)
    assert queue.take(1.0) == []
    assert queue.add(parcel(1, 1), 1.0)
    assert [len(part) for part in queue.take(1.0)] == [3]
    assert queue.next_due(1.0) == 11.0


def test_in_a_hurry_nothing_waits_for_others() -> None:
    queue = Accumulator(BatchLimits(linger=10.0))
    queue.add(parcel(1), 1.0)
    assert queue.next_due(1.5) == 11.0
    queue.hurry()
    assert queue.next_due(1.5) == 1.0
    assert len(queue.take(1.5)) == 1


def test_what_is_to_be_sent_again_waits_for_its_time() -> None:
    queue = Accumulator(BatchLimits(linger=0.0))
    early, late = parcel(1), parcel(2)
    queue.add_later(late, 5.0)
    queue.add_later(early, 3.0)
    assert queue.next_due(1.0) == 3.0
    assert queue.take(2.9) == []
    assert queue.take(3.0) == [early]
    assert queue.next_due(3.0) == 5.0
    assert queue.clear() == [late]
    assert queue.next_due(9.0) is None


@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=12), max_size=30))
def test_every_record_is_in_one_batch_and_none_is_over_the_limits(puts: list[list[int]]) -> None:
    limits = BatchLimits(linger=0.0, records=5, bytes=100)
    queue = Accumulator(limits)
    put = []
    for number, sizes in enumerate(puts):
        records = [Record(f"{number}/{index}", "", b"x" * size) for index, size in enumerate(sizes)]
        put += records
        for part in parcels(records, Nobody(), 0.0, limits):
            queue.add(part, 0.0)
    sent = []
    while batch := queue.take(0.0):
        records = [record for part in batch for record in part.records]
        assert len(records) <= 5
        assert sum(len(record.data) for record in records) <= 100
        sent += records
    assert sent == put


def test_a_part_keeps_the_history_of_its_records() -> None:
    whole = parcel(1, 2, 3)
    whole.rows, whole.attempts, whole.possible = range(10, 13), 4, 2
    part = whole.part([0, 2])
    assert [record.event_id for record in part.records] == ["e0", "e2"]
    assert (list(part.rows), part.attempts, part.possible, part.data_bytes) == ([10, 12], 4, 2, 4)


def record(group: str | None, *, last: bool = False) -> Record:
    return Record("e", "k", b"", group=group, last=last)


def one(*records: Record) -> Parcel:
    return Parcel(list(records), Nobody(), 0.0)


def test_the_last_of_a_group_waits_for_all_the_earlier_ones() -> None:
    groups = Groups()
    first, second, free = record("a"), record("a"), record("b", last=True)
    last = record("a", last=True)
    assert groups.admit(one(first)) is not None
    admitted = groups.admit(one(second, last, free))
    assert admitted is not None
    assert admitted.records == [second, free]
    assert groups.settle([second]) == []
    released = groups.settle([first])
    assert [part.records for part in released] == [[last]]
    assert groups.settle([last]) == []
    assert groups.clear() == []


def test_of_several_last_ones_each_is_sent_in_its_turn() -> None:
    """As of a user who has all events of a thing wait for each other."""
    groups = Groups()
    lasts = [record("a", last=True)._replace(event_id=f"e{number}") for number in range(3)]
    admitted = groups.admit(one(*lasts[:2]))
    assert admitted is not None
    assert admitted.records == lasts[:1]
    assert groups.admit(one(lasts[2])) is None
    for settled, following in pairwise(lasts):
        assert [part.records for part in groups.settle([settled])] == [[following]]
    assert groups.settle(lasts[2:]) == []
    assert groups.clear() == []


def test_a_last_record_alone_in_its_parcel_leaves_nothing_to_send() -> None:
    groups = Groups()
    groups.admit(one(record("a")))
    assert groups.admit(one(record("a", last=True))) is None
    assert len(groups.clear()) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60), st.randoms(use_true_random=False))
def test_no_last_record_is_sent_while_its_group_is_under_way(puts: list[tuple[str, bool]], random: object) -> None:
    groups = Groups()
    under_way: dict[str, list[Record]] = defaultdict(list)
    ended: set[str] = set()

    def send(records: list[Record]) -> None:
        for item in records:
            assert not (item.last and under_way[str(item.group)])
            under_way[str(item.group)].append(item)

    for number, (letter, last) in enumerate(puts):
        name = next(f"{letter}{count}" for count in range(len(puts) + 1) if f"{letter}{count}" not in ended)
        if last:
            ended.add(name)
        admitted = groups.admit(one(record(name, last=last)))
        send(admitted.records if admitted else [])  # type: ignore[arg-type]
        busy = [name for name, records in under_way.items() if records]
        if number % 2 and busy:
            settled = under_way[random.choice(busy)].pop()  # type: ignore[attr-defined]
            send([item for part in groups.settle([settled]) for item in part.records])
    while busy := [name for name, records in under_way.items() if records]:
        settled = under_way[busy[0]].pop()
        send([item for part in groups.settle([settled]) for item in part.records])
    assert groups.clear() == []


def test_finished_groups_are_forgotten() -> None:
    groups = Groups()
    for number in range(100):
        groups.admit(one(record(f"g{number}")))
        if number:
            groups.settle([record(f"g{number - 1}")])
    assert len(groups._unsettled) == 1
    assert groups.admit(one(record("g99", last=True))) is None, "what is under way must not be forgotten"
