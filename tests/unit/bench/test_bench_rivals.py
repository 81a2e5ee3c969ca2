"""What is made of the batches of a contender."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from lakestream_bench import _ordeals
from lakestream_bench._contenders import told_in
from lakestream_bench._ordeals import Ordeals, expected, takes, verdict
from lakestream_bench._rival import in_batches, new_batches
from lakestream_bench.rivals import Attempts, Mark, figure
from lakestream_loadgen.audit import fold
from lakestream_loadgen.events import EventMix, OrderEvents
from lakestream_localkinesis.testing import LocalKinesis, StoredRecord


def test_batches_behind_the_warm_up_count() -> None:
    marks = [Mark(10.0, 90, 50.0), Mark(12.0, 210, 60.0), Mark(13.0, 310, 61.0), Mark(15.0, 410, 62.0)]
    found = figure("ours", marks, warm_up=200, batch=100)
    assert figure("ours", [*marks[:2], marks[-1]], warm_up=200, batch=100) == found, "two were told at once"
    assert (found.events_per_second, found.batch_seconds) == (pytest.approx(200 / 3), pytest.approx(1.5))
    assert found.cpu_microseconds == pytest.approx(10_000)


def test_batches_are_full() -> None:
    assert list(in_batches(iter([b"a", b"b", b"c", b"d", b"e"]), 2)) == [[b"a", b"b"], [b"c", b"d"]]


def stored(count: int) -> list[StoredRecord]:
    """Events as a stream has them."""
    events = OrderEvents(seed=1, worker=0, prefix="t", mix=EventMix(malformed=0.0))
    return [
        StoredRecord("shardId-0", f"{number:056}", record.partition_key, record.data, datetime(2026, 1, 1, tzinfo=UTC))
        for number, record in enumerate(events.take(count, 1_700_000_000.0))
    ]


def test_a_table_of_all_events_has_lost_and_doubled_nothing() -> None:
    events = expected(stored(2_000))
    found = verdict("ours", Ordeals.KILLS, 5, events, fold(events), told=2_000)
    assert (found.lost, found.outdated, found.doubled, found.undeleted, found.read_again) == (0, 0, 0, 0, 0)
    assert 0 < found.orders < found.events == 2_000


def test_what_was_not_read_is_lost_or_outdated_and_what_was_read_twice_is_told() -> None:
    events = expected(stored(2_000))
    half = verdict("loop", Ordeals.RESHARDS, 2, events, fold(events.slice(0, 1_000)), told=2_600)
    assert half.lost > 0
    assert half.outdated > 0
    # Deleted in the second half.
    assert half.undeleted > 0
    assert half.read_again == 600


def test_rows_beyond_the_first_of_their_order_are_doubled() -> None:
    events = expected(stored(100))
    alive = fold(events)
    twice = pa.concat_tables([alive, alive.slice(0, 7)])
    assert verdict("loop", Ordeals.KILLS, 1, events, twice, told=0).doubled == 7


def test_a_line_that_is_torn_is_no_batch_yet() -> None:
    lines = b'{"events": 10}\n:: loading settings\n{"events": 5}\n{"events": 70'
    assert told_in(lines) == 15
    assert told_in(b"") == 0


def test_batches_are_told_once_also_when_spark_has_forgotten_the_first_ones() -> None:
    """As it does beyond a hundred."""
    told = [{"batchId": number, "numInputRows": 10} for number in range(250)]
    idle = {"batchId": 250, "numInputRows": 0}
    seen: set[int] = set()
    looks = (told[:60], told[:100], told[90:190], told[150:250], [*told[151:250], idle])
    assert [sum(new_batches(look, seen)) for look in looks] == [600, 400, 900, 600, 0]


def test_who_reads_files_does_not_see_shards() -> None:
    assert [name for name in ("ours", "loop", "files", "files-tuned") if takes(name, Ordeals.RESHARDS)] == [
        "ours",
        "loop",
    ]
    assert all(takes(name, Ordeals.KILLS) for name in ("ours", "loop", "files", "files-tuned"))


def test_one_that_hangs_or_leaves_a_broken_table_is_refused_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def wait(seconds: float) -> int:
        raise subprocess.TimeoutExpired("loop", seconds)

    @contextmanager
    def hanging(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(process=SimpleNamespace(wait=wait), log=log)

    (log := tmp_path / "log").write_text("the last words")
    (tmp_path / "table").mkdir()
    monkeypatch.setattr(_ordeals, "started", hanging)
    attempts = Attempts(3)
    results = attempts.each(
        {
            "hangs": lambda: _ordeals._kill("loop", cast(LocalKinesis, None), tmp_path, 1, 0),
            "broken": lambda: _ordeals._read(tmp_path / "table"),
            "right": lambda: 1,
        }
    )
    assert results == (1,)
    assert "the last words" in attempts.refused["hangs"]
    assert "hudi-rs cannot read" in attempts.refused["broken"]
