"""A long run is told in stretches that can be compared."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakestream_bench.soak import MOST_STRETCHES, STRETCH, WARM_UP, stretch_ends


@given(batches=st.integers(WARM_UP + STRETCH, 20_000))
def test_all_batches_after_the_first_are_in_stretches_that_are_long_enough(batches: int) -> None:
    ends = stretch_ends(batches)
    lengths = [end - begin for begin, end in pairwise([WARM_UP, *ends])]
    assert ends[-1] == batches
    assert 1 <= len(lengths) <= MOST_STRETCHES
    assert min(lengths) >= STRETCH
    assert set(lengths[:-1]) <= {lengths[0]}
    assert lengths[-1] < lengths[0] + MOST_STRETCHES
