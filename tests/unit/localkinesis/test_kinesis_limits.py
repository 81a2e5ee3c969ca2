"""Rates in windows of one second."""

from __future__ import annotations

from lakestream_localkinesis.core.limits import MIB, CallRate, Limits, ReadRate, WriteRate


def test_a_window_opens_with_the_first_use_after_the_last_has_passed():
    rate = CallRate(2)

    assert [rate.admit(now) for now in (0, 700, 999, 1000, 1001, 1999, 2000)] == [
        True, True, False, True, True, False, True,
    ]  # fmt: skip


def test_a_thousand_records_a_second():
    rate = WriteRate(Limits())

    assert all(rate.admit(5000, 10) for _ in range(1000))
    assert not rate.admit(5999, 10)
    assert rate.admit(6000, 10)


def test_a_mebibyte_a_second_and_small_records_still_fit():
    rate = WriteRate(Limits())

    assert rate.admit(0, MIB - 100)
    assert not rate.admit(1, 101)
    assert rate.admit(2, 100)
    assert not rate.admit(999, 1)


def test_a_large_record_takes_what_the_seconds_before_left_over():
    rate = WriteRate(Limits())

    # Ten seconds' worth at first, beside the second's own.
    assert rate.admit(0, 10 * MIB)
    assert rate.admit(0, MIB)
    assert not rate.admit(0, 2 * MIB)
    # The second that was used left nothing, the four after it a mebibyte each.
    assert not rate.admit(1000, MIB + 1)
    assert rate.admit(5000, 4 * MIB)
    assert not rate.admit(5999, MIB + 1)


def test_no_more_than_ten_mebibytes_are_left_over():
    rate = WriteRate(Limits())

    assert rate.admit(3_600_000, 10 * MIB)
    assert not rate.admit(3_600_000, MIB + 1)


def test_five_reads_a_second():
    rate = ReadRate(Limits())

    assert [rate.admit(now) for now in (0, 0, 0, 0, 0, 999, 1000)] == [True] * 5 + [False, True]


def test_an_answer_of_ten_mebibytes_blocks_the_shard_for_five_seconds():
    rate = ReadRate(Limits())
    assert rate.admit(0)
    rate.charge(10 * MIB)

    assert not rate.admit(1000)
    assert not rate.admit(4999)
    assert rate.admit(5000)


def test_two_mebibytes_a_second_are_free():
    rate = ReadRate(Limits())
    assert rate.admit(0)
    rate.charge(MIB)
    assert rate.admit(100)
    rate.charge(MIB // 2)
    assert rate.admit(200)
    rate.charge(MIB // 2)

    assert not rate.admit(300)
    assert rate.admit(1000)


def test_without_limits_nothing_is_refused():
    limits = Limits.none()
    write, read = WriteRate(limits), ReadRate(limits)

    assert all(write.admit(0, MIB) for _ in range(5000))
    for _ in range(100):
        assert read.admit(0)
        read.charge(10 * MIB)
