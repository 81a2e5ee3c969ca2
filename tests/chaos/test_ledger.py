"""The producer's ledger against a stream: what was acknowledged, and what got no answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chaos.audit import Found, judge
from chaos.events import Fate, Sent, epoch_micros
from chaos.kpl import aggregate, hash_key
from chaos.ledger import Ledger, Loss, Put, Span, Stored, Told

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _put(data: bytes) -> Put:
    return Put("key", data, (Sent("noise", "key", data, Fate.QUARANTINE, None),))


def test_what_got_no_answer_counts_if_the_stream_has_it() -> None:
    ledger = Ledger()
    ledger.acknowledge("shard-0", 1, _put(b"a"))
    ledger.lose_sight(_put(b"b"))
    ledger.lose_sight(_put(b"c"))
    truth = ledger.settle([Stored("shard-0", 1, b"a"), Stored("shard-0", 2, b"c")], {})
    assert {where: sent.data for where, sent in truth.sent.items()} == {
        ("shard-0", 1, 0): b"a",
        ("shard-0", 2, 0): b"c",
    }
    assert truth.faults == ()


def test_a_stream_that_lost_or_doubled_or_altered_a_record_is_told() -> None:
    for stream in ([], [Stored("s", 1, b"a"), Stored("s", 2, b"a")], [Stored("s", 1, b"A")]):
        ledger = Ledger()
        ledger.acknowledge("s", 1, _put(b"a"))
        assert len(ledger.settle(stream, {}).faults) == 1


def _aggregate(*keys: str, strays: bool = False) -> Put:
    members = tuple(Sent("event", key, key.encode() * 200, Fate.QUARANTINE, None) for key in keys)
    return Put(keys[0], aggregate([(member.partition_key, member.data) for member in members]), members, strays)


def test_an_aggregate_is_several_records() -> None:
    put, ledger = _aggregate("a", "b"), Ledger()
    ledger.acknowledge("s", 1, put)
    assert list(ledger.settle([Stored("s", 1, put.data)], {"s": range(1)}).sent) == [("s", 1, 0), ("s", 1, 1)]


def test_where_a_record_is_from_is_known_of_each() -> None:
    put, ledger = _aggregate("a", "b"), Ledger()
    alone = Put("c", b"c", (Sent("event", "c", b"c", Fate.QUARANTINE, None),))
    for number, one in enumerate((put, alone)):
        ledger.acknowledge("s", number, one)
    # The stream may have it without the partition key that was offered.
    truth = ledger.settle([Stored("s", 0, put.data, NOON, "a"), Stored("s", 1, b"c", NOON)], {})
    origins = [truth.origin(where) for where in (("s", 0, 0), ("s", 0, 1), ("s", 1, 0), ("file", 0, 0))]
    noon = epoch_micros(NOON)
    assert [(one.get("_arrival"), one.get("_partition_key")) for one in origins] == [
        *((noon, "a"), (noon, "b"), (noon, None), (None, None))
    ]


def test_a_pack_is_several_records_with_the_key_of_the_one_that_they_are_in() -> None:
    members = tuple(Sent("event", "a", data, Fate.ROW, None) for data in (b"{1}", b"{2}"))
    put, ledger = Put("a", b"{1}\n{2}", members, is_pack=True), Ledger()
    ledger.acknowledge("s", 0, put)
    truth = ledger.settle([Stored("s", 0, put.data, partition_key="chosen by the stream")], {})
    assert truth.sent == {("s", 0, 0): members[0], ("s", 0, 2**32): members[1]}
    assert {origin["_partition_key"] for origin in truth.origins.values()} == {"chosen by the stream"}


def test_members_that_belong_to_another_shard_do_not_count_in_an_aggregate_with_strays() -> None:
    put, ledger = _aggregate("a", "b", "c", strays=True), Ledger()
    ledger.acknowledge("s", 1, put)
    stream = [Stored("s", 1, put.data)]
    below = {"s": range(hash_key("a") + 1)}
    assert hash_key("a") < hash_key("c") < hash_key("b")
    assert [sub for _, _, sub in ledger.settle(stream, below).sent] == [0]
    # Where the stream places records itself, all do.
    assert [sub for _, _, sub in ledger.settle(stream, {}).sent] == [0, 1, 2]


def _trimmed(*, acknowledged: int) -> tuple[Ledger, list[Stored]]:
    """A ledger, and its first two records, of noon and a minute later, which the stream has lost."""
    ledger = Ledger()
    for number in range(acknowledged):
        ledger.acknowledge("s", number, _put(b"%d" % number))
    return ledger, [Stored("s", number, b"%d" % number, NOON + timedelta(minutes=number)) for number in range(2)]


def test_what_the_stream_has_lost_may_be_missing_where_a_driver_has_told_of_it() -> None:
    ledger, gone = _trimmed(acknowledged=3)
    losses = (Loss("s", NOON, NOON + timedelta(minutes=1)), Loss("another", NOON, NOON + timedelta(hours=1)))
    truth = ledger.settle([Stored("s", 2, b"2", NOON)], {}, gone, Told(losses, frozenset({"s", "another"})))
    assert truth.faults == ()
    assert list(truth.sent) == [("s", 0, 0), ("s", 1, 0), ("s", 2, 0)]
    assert truth.skippable == {("s", 0, 0)}
    verdict = judge(truth, Found([], []), keyed=False)
    assert (verdict.skipped, verdict.lost) == (1, 2)
    # Nobody has seen its shard: what tells of that time tells of it.
    unseen = Told((losses[1],), frozenset({"another"}))
    assert ledger.settle([], {}, gone, unseen).skippable == {("s", 0, 0), ("s", 1, 0)}


def test_what_was_gone_before_the_first_batch_is_nobodys() -> None:
    ledger, gone = _trimmed(acknowledged=2)
    truth = ledger.settle([], {}, gone, Told(shards=frozenset("s"), begins=NOON + timedelta(minutes=1)))
    assert truth.skippable == {("s", 0, 0)}


def test_a_loss_of_which_the_stream_knows_nothing_is_told() -> None:
    ledger, there = _trimmed(acknowledged=2)
    told = Told((Loss("s", NOON, NOON + timedelta(hours=1)),), frozenset("s"))
    assert ledger.settle(there, {}).faults == ()
    (fault,) = ledger.settle(there, {}, (), told).faults
    assert "has lost nothing" in fault


def test_what_arrived_in_a_span_has_to_be_read_once_more() -> None:
    ledger, there = _trimmed(acknowledged=2)
    minute = timedelta(minutes=1)
    spans = (Span(NOON - minute, NOON + minute), Span(NOON - minute, NOON + 2 * minute))
    truth = ledger.settle(there, {}, readings=3, spans=spans)
    # The second one arrived where the first span ends.
    assert truth.again == {("s", 0): 2, ("s", 1): 1}
