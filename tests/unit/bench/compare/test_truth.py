"""The right answers, from a handful of events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakestream_bench.compare.arms import JSON, PARTITION
from lakestream_bench.compare.engines import in_duckdb
from lakestream_bench.compare.queries import TABLE, View, difference, newest, queries, right_answer
from lakestream_bench.compare.truth import (
    BATCH,
    Answer,
    Staleness,
    State,
    Truth,
    WrongAnswerError,
    differences,
    lagging,
    subjects,
)
from lakestream_loadgen.content import EVENT_SCHEMA

DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _event(
    batch: int, order: str, version: int, op: str = "u", status: str = "paid", amount: float = 1.1
) -> dict[str, object]:
    created = DAY.replace(day=1 + int(order[1:]) % 2)
    return {
        "event_id": f"{order}-{version}",
        "order_id": order,
        "version": version,
        "op": op,
        "status": status,
        "customer_id": "c",
        "amount": amount,
        "created_at": created,
        "updated_at": created,
        "note": "Grüße",
        "_arrival": f"{batch:06}",
        "_sequence_number": "1",
        BATCH: batch,
    }


_SCHEMA = pa.schema([*EVENT_SCHEMA, ("_arrival", pa.string()), ("_sequence_number", pa.string()), (BATCH, pa.int64())])
TRUTH = Truth(
    pa.Table.from_pylist(
        [
            _event(0, "o1", 1, "i", "created"),
            _event(0, "o2", 1, "i", "created"),
            _event(1, "o1", 3),
            _event(1, "o2", 2, "d", "cancelled"),
            # Late: version 3 is there already.
            _event(2, "o1", 2, "u", "late"),
            _event(2, "o3", 1, "i", "created", 2.2),
        ],
        _SCHEMA,
    )
)


def test_the_state_is_the_newest_version_without_what_was_deleted() -> None:
    assert TRUTH.until(1).aggregate() == (("created", "2", "220"),)
    assert TRUTH.until(2).aggregate() == (("paid", "1", "110"),)
    assert TRUTH.until(3).aggregate() == (("created", "1", "220"), ("paid", "1", "110"))


def test_events_taken_for_orders_count_what_was_replaced_and_deleted() -> None:
    assert TRUTH.raw(3).aggregate() == (
        ("cancelled", "1", "110"),
        ("created", "3", "440"),
        ("late", "1", "110"),
        ("paid", "1", "110"),
    )


def test_a_look_up_finds_the_one_row_of_an_order_and_none_of_a_deleted_one() -> None:
    assert TRUTH.until(3).lookup("o1") == (("3", "paid", "110"),)
    assert TRUTH.until(3).lookup("o2") == ()
    assert [version for version, _, _ in TRUTH.raw(3).lookup("o1")] == ["1", "2", "3"]


def test_a_day_is_that_of_the_creation() -> None:
    assert TRUTH.until(3).partition("2026-01-02") == (("2", "330"),)
    assert TRUTH.until(3).partition("2026-01-01") == (("0", "0"),)


def test_a_scan_reads_every_column() -> None:
    (found,) = TRUTH.until(2).scan()
    letters = len("o1-3" + "o1" + "u" + "paid" + "c" + "Grüße")
    millis = round(DAY.replace(day=2).timestamp() * 1000)
    assert found == ("1", str(letters), "3", "110", str(millis), str(millis))


def test_changes_are_rows_that_came_later_and_not_late_events_that_lost() -> None:
    assert TRUTH.until(3).changed_since(1) == (("2", "4"),)
    assert TRUTH.until(3).changed_since(2) == (("1", "1"),)


def test_a_difference_has_each_order_once_whatever_happened_to_it_meanwhile() -> None:
    def changes(then: int, now: int) -> Answer:
        return State(TRUTH.until(now).rows, TRUTH.until(then)).changes()

    # o1 went from version 1 to 3, and a late version 2 changed nothing.
    assert changes(1, 3) == (("delete", "1", "1", "0"), ("insert", "1", "0", "1"), ("update", "1", "1", "3"))
    assert changes(2, 3) == (("insert", "1", "0", "1"),)
    assert changes(3, 3) == ()


@pytest.mark.parametrize("then", [1, 2])
def test_the_sql_of_each_question_finds_the_truth_in_the_events_alone(then: int) -> None:
    about = replace(subjects(TRUTH, 3), then=then)
    past = newest(f"(FROM lake WHERE {BATCH} < {then})")
    views = {
        View.STATE: newest("lake"),
        View.CHANGES: f"SELECT * FROM ({newest('lake')}) WHERE {BATCH} >= {then}",
        View.PAST: past,
        View.DIFFERENCE: difference(newest("lake"), past),
    }
    day = pc.strftime(TRUTH.events["created_at"], format="%Y-%m-%d")
    with duckdb.connect() as connection:
        connection.register("lake", TRUTH.events.append_column(PARTITION, day))
        for query in queries(JSON, about):
            rows = connection.sql(in_duckdb(f"WITH {TABLE} AS ({views[query.view]}) {query.sql}")).fetchall()
            given = tuple(tuple(str(value) for value in row) for row in rows)
            assert given == right_answer(query, TRUTH, 3, then), query.kind


def test_a_view_that_lags_is_told_what_it_may_answer_and_how_far_it_is_behind() -> None:
    state, fresh = lagging(TRUTH, [("o1", 3), ("o3", 1)], 3)
    assert fresh == Staleness(0, 0.0)
    assert state.aggregate() == TRUTH.until(3).aggregate()
    # The first batch alone: o1 is old and o2 deleted since the second, and o3 is missing since the third.
    state, old = lagging(TRUTH, [("o1", 1), ("o2", 1)], 3)
    assert old == Staleness(batches=2, orders=1.5)
    assert state.aggregate() == TRUTH.until(1).aggregate()
    _, partly = lagging(TRUTH, [("o1", 3)], 3)
    assert partly == Staleness(batches=1, orders=0.5)


def test_what_a_view_never_can_show_is_wrong() -> None:
    with pytest.raises(WrongAnswerError, match="never sent"):
        lagging(TRUTH, [("o1", 9)], 3)
    with pytest.raises(WrongAnswerError, match="never sent"):
        lagging(TRUTH, [("o3", 1)], 2)
    with pytest.raises(WrongAnswerError, match="1 orders twice"):
        lagging(TRUTH, [("o1", 1), ("o1", 3)], 3)


def test_the_look_is_about_a_living_order_that_changed_much() -> None:
    about = subjects(TRUTH, 3)
    assert (about.order, about.then) == ("o1", 2)
    assert about.day in {"2026-01-01", "2026-01-02"}


def test_a_difference_is_told_in_few_words() -> None:
    assert differences((("1", "2"),), ()) == "right is 1 2, the answer is nothing"
    assert len(differences(tuple(("x" * 50,) for _ in range(9)), ())) < 200
