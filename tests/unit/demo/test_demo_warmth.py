from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakestream.testing.progress import progress_with
from lakestream_api import Progress, StageSeconds
from lakestream_demo.document import ORDERS, make_document
from lakestream_demo.settings import Table
from lakestream_demo.warmth import FEW_BATCHES, WarmUp, all_warm

START = datetime(2026, 1, 1, tzinfo=UTC)


def batches(*seconds: float, records: int = 10) -> list[Progress]:
    """A batch every ten seconds; each took so long."""
    return [
        progress_with(
            batch=number,
            finished_at=START + timedelta(seconds=10 * number),
            records=records,
            bytes=records,
            rows_written=records,
            seconds=StageSeconds(plan=0, fetch=0, write=took, commit=0),
        )
        for number, took in enumerate(seconds)
    ]


def of_table(table: Table) -> WarmUp:
    text = ORDERS.read_text(encoding="utf-8")
    return WarmUp.of(make_document(text, endpoint="http://127.0.0.1:1", lake="/lake", table=table).hudi)


def test_a_round_of_compaction_is_part_of_the_warm_up() -> None:
    """With `everyCommits: 4` the first round that compacts begins with the fifth commit; the sixth is beside it."""
    assert of_table(Table.MOR).batches == 6
    assert of_table(Table.COW).batches == FEW_BATCHES


@pytest.mark.parametrize(
    ("seconds", "warm_at"),
    [
        ((), None),
        ((1.0, 1.0), None),
        ((20.0, 4.0, 1.9), 20),  # keeps pace with a trigger of 2 s
        ((20.0, 19.0, 2.1), None),  # still gets faster
        ((20.0, 19.0, 9.0, 3.0, 2.9, 2.8), 40),  # never keeps pace, on a slow machine, but gets no faster either
        ((20.0, 4.0, 4.5, 1.0), 20),  # the first time counts
    ],
)
def test_a_writer_is_warm_when_enough_batches_are_done_and_they_take_what_they_will(
    seconds: tuple[float, ...], warm_at: int | None
) -> None:
    expected = None if warm_at is None else START + timedelta(seconds=warm_at)
    assert WarmUp("hudi", batches=3).warm_at(batches(*seconds)) == expected


def test_batches_without_records_write_nothing_and_warm_nothing() -> None:
    warm_up = WarmUp("hudi", batches=3)
    assert warm_up.warm_at(batches(1.0, 1.0, 1.0, 1.0, records=0)) is None


def test_all_are_warm_when_each_is() -> None:
    warm_ups = (WarmUp("hudi", 3), WarmUp("json", 2))
    assert not all_warm(warm_ups, {"hudi": batches(1.0, 1.0), "json": batches(1.0, 1.0)})
    assert all_warm(warm_ups, {"hudi": batches(1.0, 1.0, 1.0), "json": batches(1.0, 1.0)})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ((), "hudi 0 of 3"),
        ((20.0, 8.04), "hudi 2 of 3 (8.0 s)"),
        ((20.0, 8.0, 4.0), "hudi 3 of 4 (4.0 s)"),
        ((20.0, 8.0, 1.0), "hudi warm"),
    ],
)
def test_how_far_a_writer_is(seconds: tuple[float, ...], text: str) -> None:
    assert WarmUp("hudi", batches=3).describe(batches(*seconds)) == text
