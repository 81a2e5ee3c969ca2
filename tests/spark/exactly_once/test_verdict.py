"""The verdict of the kill tests finds what it is there to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.lake import differences
from lab.stream import AGGREGATED, Content, OrderStream, Place, Truth
from lakestream_loadgen.audit import compare, fold
from lakestream_loadgen.content import canonical_text
from lakestream_localkinesis.testing import LocalKinesis

Rows = list[tuple[Place, Content]]


@pytest.fixture(scope="module")
def truth(server: LocalKinesis) -> Iterator[Truth]:
    stream = OrderStream(server, "verdict", seed=1)
    stream.put(8)
    return stream.truth()


def altered(rows: Rows) -> Rows:
    (place, content), *rest = rows
    return [(place, replace(content, data=content.data.replace(b"order", b"0rder"))), *rest]


def from_nowhere(rows: Rows) -> Rows:
    (shard, sequence, sub), content = rows[0]
    return [*rows, ((shard, sequence + 1, sub), content)]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda rows: rows[1:], "missing"),
        (lambda rows: [*rows, rows[-1]], "doubled"),
        (altered, "altered"),
        (from_nowhere, "from nowhere"),
    ],
    ids=["missing", "doubled", "altered", "from nowhere"],
)
def test_one_wrong_row_is_found(truth: Truth, change, found: str) -> None:
    rows = list(truth.good.items())
    assert differences("rows", truth.good, rows) == []
    first, sample = differences("rows", truth.good, change(rows))
    assert first == f"rows: 1 of {len(rows)} records {found}"
    assert "shardId-" in sample


def test_the_truth_has_records_of_both_kinds_and_they_are_the_events_as_sent(truth: Truth) -> None:
    assert truth.records == 8 * (31 + AGGREGATED)
    assert truth.kinesis_records == 8 * 32
    assert len(truth.unusable) >= 8
    assert [text.encode() for text in canonical_text(truth.events()).to_pylist()] == [
        content.data for content in truth.good.values()
    ]


def test_a_snapshot_that_lacks_the_last_change_of_an_order_is_found(truth: Truth) -> None:
    events = truth.events()
    whole = fold(events)
    assert compare(whole, whole).ok
    assert not compare(whole, fold(events.slice(0, len(events) - 20))).ok
