"""The producer's ledger against a stream: what was acknowledged, and what got no answer."""

from __future__ import annotations

from chaos.events import Fate, Sent
from chaos.kpl import aggregate
from chaos.ledger import Ledger, Put, Stored


def _put(data: bytes) -> Put:
    return Put("key", data, (Sent("noise", "key", data, Fate.QUARANTINE, None),))


def test_what_got_no_answer_counts_if_the_stream_has_it() -> None:
    ledger = Ledger()
    ledger.acknowledge("shard-0", 1, _put(b"a"))
    ledger.lose_sight(_put(b"b"))
    ledger.lose_sight(_put(b"c"))
    truth = ledger.settle([Stored("shard-0", 1, b"a"), Stored("shard-0", 2, b"c")])
    assert {where: sent.data for where, sent in truth.sent.items()} == {
        ("shard-0", 1, 0): b"a",
        ("shard-0", 2, 0): b"c",
    }
    assert truth.faults == ()


def test_a_stream_that_lost_or_doubled_or_altered_a_record_is_told() -> None:
    for stream in ([], [Stored("s", 1, b"a"), Stored("s", 2, b"a")], [Stored("s", 1, b"A")]):
        ledger = Ledger()
        ledger.acknowledge("s", 1, _put(b"a"))
        assert len(ledger.settle(stream).faults) == 1


def test_an_aggregate_is_several_records() -> None:
    members = tuple(Sent("event", "key", data, Fate.QUARANTINE, None) for data in (b"a", b"b" * 300))
    data = aggregate("key", [member.data for member in members])
    ledger = Ledger()
    ledger.acknowledge("s", 1, Put("key", data, members))
    assert list(ledger.settle([Stored("s", 1, data)]).sent) == [("s", 1, 0), ("s", 1, 1)]
