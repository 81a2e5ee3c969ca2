"""Rows of text in columns, whatever the script."""

from __future__ import annotations

from lakestream.aligned import aligned, widths_of


def test_texts_stand_below_each_other_and_numbers_end_there() -> None:
    rows = [["partition", "rows", ""], ["日=東京", "1,204", "!"], ["dt=A\u030a", "7", ""]]
    widths = widths_of(rows)
    assert widths == [9, 5, 1]
    assert [aligned(row, widths, {1}) for row in rows] == [
        "partition   rows",
        "日=東京    1,204  !",
        "dt=A\u030a           7",
    ]
