"""Durations, sizes and memory."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_api import format_duration, format_size, memory_mebibytes, parse_duration, parse_size, rounded_size

MILLISECONDS = st.integers(0, 10**14)


@given(MILLISECONDS)
def test_a_written_duration_reads_as_the_same(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(value)) == value


@given(st.integers(0, 10**17))
def test_a_written_size_reads_as_the_same(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(alphabet="0123456789hmsKMGTi.- ", max_size=8))
def test_any_text_is_read_or_refused_with_itself_in_the_message(text: str) -> None:
    for parse in (parse_duration, parse_size):
        try:
            parse(text)
        except ValueError as error:
            assert str(error).startswith(repr(text))  # noqa: PT017 - most texts are refused, some are not


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0s", timedelta(0)),
        ("500ms", timedelta(milliseconds=500)),
        ("10s", timedelta(seconds=10)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("1h2m3s4ms", timedelta(hours=1, minutes=2, seconds=3, milliseconds=4)),
    ],
)
def test_durations_are_written_the_way_they_are_read(text: str, value: timedelta) -> None:
    assert parse_duration(text) == value
    assert format_duration(value) == text


@pytest.mark.parametrize("text", ["", "10", "s", "1.5s", "-1s", "1s1m", "1d", " 1s", "1 s", "1S", "٣s"])
def test_these_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("1000", 1000),
        ("1Ki", 1024),
        ("256Mi", 268_435_456),
        ("3Gi", 3 * 1024**3),
        ("2Ti", 2 * 1024**4),
    ],
)
def test_sizes_are_written_the_way_they_are_read(text: str, value: int) -> None:
    assert parse_size(text) == value
    assert format_size(value) == text


@pytest.mark.parametrize("text", ["", "Mi", "1.5Gi", "-1", "1MB", "1mi", "1 Mi", "٣"])
def test_these_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_memory_is_in_binary_units() -> None:
    assert (memory_mebibytes("512m"), memory_mebibytes("2g")) == (512, 2048)


def test_sizes_are_rounded_for_people() -> None:
    assert [rounded_size(count) for count in (0, 1_023, 1_024, 5 << 20, 3 << 30, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
        "1.0 TiB",
    ]
