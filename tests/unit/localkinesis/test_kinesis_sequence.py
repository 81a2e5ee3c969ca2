"""Sequence numbers: their look and their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakestream_localkinesis.core import sequence

seconds = st.integers(1_400_000_000, 4_000_000_000)
indices = st.integers(0, 2**31 - 1)
records = st.integers(1, 2**62)


@given(indices, seconds, records, seconds)
def test_a_record_number_is_56_digits_between_its_shards_bounds(index, created, record, arrival):
    number = sequence.record_sequence(sequence.sequence_base(index, created), record, arrival)

    assert len(str(number)) == 56
    assert sequence.first_sequence(index, created) < number < sequence.last_sequence(index, created, arrival)
    assert sequence.is_sequence(number)
    assert sequence.shard_index_of(number) == index
    assert sequence.created_s_of(number) == created


@given(indices, indices, seconds, st.integers(1, 1000))
def test_all_of_a_younger_shard_is_above_all_of_an_older_one(parent, child, created, gap):
    parents_last = sequence.last_sequence(parent, created, created + 10**6)

    assert sequence.first_sequence(child, created + gap) > parents_last


def test_a_number_that_kinesis_handed_out_is_understood():
    # From the example of PutRecord in the API reference.
    number = 49543463076548007577105092703039560359975228518395019266

    assert sequence.is_sequence(number)
    assert sequence.shard_index_of(number) == 0
    assert sequence.created_s_of(number) == 1411403981  # 22 September 2014


def test_other_numbers_are_none():
    assert not any(sequence.is_sequence(number) for number in (0, 1, 10**55, 3 << 184, 10**60))
