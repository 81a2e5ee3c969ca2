"""A long run is told in stretches that can be compared."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import psutil
from hypothesis import given
from hypothesis import strategies as st

from lakestream_bench.soak import MOST_STRETCHES, STRETCH, WARM_UP, most_seconds, stretch_ends, total


@given(batches=st.integers(WARM_UP + STRETCH, 20_000))
def test_all_batches_after_the_first_are_in_stretches_that_are_long_enough(batches: int) -> None:
    ends = stretch_ends(batches)
    lengths = [end - begin for begin, end in pairwise([WARM_UP, *ends])]
    assert ends[-1] == batches
    assert 1 <= len(lengths) <= MOST_STRETCHES
    assert min(lengths) >= STRETCH
    assert set(lengths[:-1]) <= {lengths[0]}
    assert lengths[-1] < lengths[0] + MOST_STRETCHES


def test_a_process_that_ended_since_it_was_found_ends_no_run() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = psutil.Process(process.pid)
        process.communicate(b"\n")
    ours = psutil.Process()
    assert total([found, ours], lambda one: one.memory_info().rss) > 0
    assert total([found], lambda one: one.num_fds()) == 0


def test_batches_have_the_time_that_their_triggers_take() -> None:
    assert most_seconds(200, "200ms") > 200
    assert most_seconds(200, "1m") > 200 * 60
