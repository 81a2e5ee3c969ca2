"""What a reader may see of a table while it is written, and what is told if it sees something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.audit import Seen, judge_seen
from chaos.events import Fate, Row, Sent
from chaos.ledger import Truth, Where


def _sent(key: str, version: int, op: str = "u") -> Sent:
    row: Row = {"id": key, "site": "north", "version": version, "op": op, "amount": "1.10", "tags": "none"}
    return Sent("event", key, f"{key}{version}{op}".encode(), Fate.ROW, row)


A1, A2, B1, B2, NOISE = (("s", number, 0) for number in range(5))
SENT: dict[Where, Sent] = {
    A1: _sent("a", 1),
    A2: _sent("a", 2),
    B1: _sent("b", 1),
    B2: _sent("b", 2, "d"),
    NOISE: Sent("noise", "n", b"noise", Fate.QUARANTINE, None),
}
TRUTH = Truth(SENT, (), origins={A1: {"_arrival": 7, "_partition_key": "a"}})


def _rows(*places: Where) -> list[tuple[Where, Row]]:
    """As they were sent, of the columns that are asked for."""
    return [(at, {**(SENT[at].row or {}), "amount": 1.1, "_arrival": 7, "_partition_key": "a"}) for at in places]


def _without_tags(rows: list[tuple[Where, Row]]) -> list[tuple[Where, Row]]:
    return [(at, {name: value for name, value in row.items() if name != "tags"}) for at, row in rows]


@pytest.mark.parametrize(
    ("keyed", "readings"),
    [
        (False, [Seen([]), Seen(_rows(A1, B2), told=2), Seen(_rows(B2, A2, A1), told=2)]),
        (False, [Seen(_without_tags(_rows(A1)))]),
        (False, [Seen(_rows(A1, B1), told=2), Seen(_rows(A1), told=2, restores=1)]),
        (True, [Seen(_rows(A1, B1), told=9, again=frozenset({A1, B1})), Seen(_rows(A2), told=9)]),
        (True, [Seen(_rows(A2)), Seen(_rows(A1, B1), restores=1)]),
        (True, [Seen(_rows(A1, B1)), Seen(_rows(A2, B1), since=frozenset({A2}))]),
    ],
)
def test_what_may_be_seen(keyed: bool, readings: list[Seen]) -> None:
    assert judge_seen(TRUTH, readings, keyed=keyed) == []


@pytest.mark.parametrize(
    ("keyed", "readings", "fault"),
    [
        (False, [Seen(_rows(A1, A1))], "reading 1: ('s', 0, 0) is there 2 times"),
        (False, [Seen(_rows(A1)), Seen([])], "reading 2: ('s', 0, 0) is gone"),
        (False, [Seen(_rows(A1), told=2)], "reading 1: 1 rows, and drivers had told of 2"),
        (True, [Seen(_rows(A1, A2))], "reading 1: ('a', 'north') is there 2 times"),
        (True, [Seen(_rows(A2)), Seen(_rows(A1))], "reading 2: ('a', 'north') had version 2, and has 1"),
        (True, [Seen(_rows(A1)), Seen([])], "reading 2: ('a', 'north') is gone, with version 1, and nobody"),
        (True, [Seen(_rows(A1), again=frozenset({A1, B1}))], "reading 1: ('s', 2, 0) is there then"),
        (True, [Seen(_rows(A1), again=frozenset())], "reading 1: ('s', 0, 0) is there then"),
        (True, [Seen(_rows(A1)), Seen(_rows(A2), since=frozenset())], "reading 2: ('s', 1, 0) has come since"),
        (
            False,
            [Seen([]), Seen(_rows(A1), since=frozenset({A1, B1}))],
            "reading 2: ('s', 2, 0) is among what was written",
        ),
        (False, [Seen(_rows(A1)), Seen(_rows(A1), since=frozenset({A1}))], "reading 2: ('s', 0, 0) is among what was"),
        (False, [Seen(_rows(NOISE))], "reading 1: ('s', 4, 0) made no row"),
        (False, [Seen([(("t", 0, 0), {})])], "reading 1: ('t', 0, 0) made no row"),
        (False, [Seen([(A1, {**_rows(A1)[0][1], "amount": "1.11"})])], "reading 1: ('s', 0, 0) is another: {'amount'"),
        (False, [Seen([(A1, {**_rows(A1)[0][1], "_arrival": 8})])], "reading 1: ('s', 0, 0) is another: {'_arrival'"),
    ],
)
def test_what_may_not_be_seen(keyed: bool, readings: list[Seen], fault: str) -> None:
    (told,) = judge_seen(TRUTH, readings, keyed=keyed)
    assert told.startswith(fault)


def test_what_was_read_before_a_restore_is_no_measure_of_what_is_behind_it() -> None:
    readings = [Seen(_rows(A2)), Seen(_rows(A1), restores=1), Seen([], restores=1)]
    assert judge_seen(TRUTH, readings, keyed=True) == []
    assert len(judge_seen(TRUTH, [replace(one, restores=0) for one in readings], keyed=True)) == 2


def test_what_somebody_had_read_once_more_is_written_once_more() -> None:
    readings = [Seen(_rows(A1)), Seen(_rows(A1), since=frozenset({A1}))]
    assert judge_seen(replace(TRUTH, readings=2), readings, keyed=True) == []
