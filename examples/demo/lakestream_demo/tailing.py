"""Following a file of JSON lines while another process appends to it."""

from __future__ import annotations

from pathlib import Path


class LineTail:
    """Reads the lines that were appended since it last looked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_lines(self) -> list[bytes]:
        """Whole lines only: one without its end is still being written, and is left for the next look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()
