"""The fold of a log, against a dictionary as model."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.audit import compare, fold
from lakestream_loadgen.audit.lake import PLACE_SCHEMA
from lakestream_loadgen.content import EVENT_SCHEMA

SCHEMA = pa.schema([*(f.with_type(pa.string()) if f.name.endswith("_at") else f for f in EVENT_SCHEMA), *PLACE_SCHEMA])
AT = "2026-01-01T00:00:00.000Z"

Row = dict[str, object]


def row(order: str | None, version: int, op: str = "u", sequence: int = 1, arrival: int = 0, note: str = "") -> Row:
    return {
        "event_id": f"{order}.{version}",
        "order_id": order,
        "version": version,
        "op": op,
        "status": "paid",
        "customer_id": "c1",
        "amount": 12.5,
        "created_at": AT,
        "updated_at": AT,
        "note": note,
        "_shard_id": "s0",
        "_sequence_number": str(sequence),
        "_sub_sequence": 0,
        "_arrival": f"2026-01-01T00:00:{arrival:02d}Z",
    }


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


rows = st.builds(
    row,
    st.sampled_from(["a", "b", "c", "d", None]),
    st.integers(1, 4),
    st.sampled_from("iud"),
    # Of different lengths: sequence numbers are numbers, not text.
    st.integers(0, 10**12),
    st.integers(0, 3),
    st.text(max_size=3),
)


@given(st.lists(rows, max_size=40))
def test_the_fold_is_what_a_dictionary_would_hold(log: list[Row]) -> None:
    latest: dict[object, Row] = {}
    for item in log:

        def rank(of: Row) -> tuple[object, ...]:
            return of["version"], of["_arrival"], int(str(of["_sequence_number"]))

        order = item["order_id"]
        if order is not None and (order not in latest or rank(item) >= rank(latest[order])):
            latest[order] = item
    live = {order: item for order, item in latest.items() if item["op"] != "d"}
    folded = fold(table(log)).to_pylist()
    assert {item["order_id"] for item in folded} == set(live)
    assert len(folded) == len(live)
    for item in folded:
        expected = live[item["order_id"]]
        same = ("version", "op", "_arrival", "_sequence_number")
        assert [item[name] for name in same] == [expected[name] for name in same]


def test_nothing_folds_to_nothing() -> None:
    assert len(fold(table([]))) == 0
    assert compare(fold(table([])), table([])).ok


def test_a_snapshot_like_the_fold_passes_whatever_its_types() -> None:
    log = fold(table([row("a", 2), row("b", 1, "i"), row("a", 1, "i")]))
    typed = log.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
    verdict = compare(log, typed)
    assert verdict.ok
    assert verdict.rows == 2


def test_every_difference_is_counted_by_its_kind() -> None:
    expected = table([row("a", 1), row("b", 2), row("c", 3), row("d", 1)])
    snapshot = table([row("b", 2), row("b", 2), row("c", 2), row("d", 1, note="x"), row("z", 1)])
    verdict = compare(expected, snapshot)
    assert (verdict.missing, verdict.unexpected, verdict.different, verdict.doubled) == (1, 1, 2, 1)
    assert verdict.samples == ("a", "z", "c", "d")
    assert not verdict.ok
