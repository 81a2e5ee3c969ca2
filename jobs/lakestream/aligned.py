"""Rows of text in columns, as a terminal shows them. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.cells import cell_len


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns of a terminal that the widest text of each column takes; one row at least."""
    return [max(map(cell_len, texts)) for texts in zip(*rows, strict=True)]


def aligned(row: Sequence[str], widths: Sequence[int], numbers: Container[int]) -> str:
    """A row as a line.

    Args:
        row: its texts.
        widths: of the columns.
        numbers: columns, from 0, whose texts end below each other.
    """
    cells = []
    for column, (text, width) in enumerate(zip(row, widths, strict=True)):
        spaces = " " * (width - cell_len(text))
        cells.append(spaces + text if column in numbers else text + spaces)
    return "  ".join(cells).rstrip()
