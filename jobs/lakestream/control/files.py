"""Progress as a local file of JSON lines: for the demo, for tests, and for `tail -f`."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from lakestream.errors import SettingsError
from lakestream_api import Progress


class JsonLinesProgress:
    """Appends one line a batch. Each is written by one call, so that a reader sees whole lines but for the last.

    Beyond `max_bytes` the file is renamed to `<name>.1`, in place of the one before: what is kept is
    between one and two times that. A pipe or a terminal gets the lines as well.

    Raises:
        SettingsError: there can be no such file.
    """

    def __init__(self, path: Path, max_bytes: int = 64 << 20) -> None:
        try:
            with path.open("ab", buffering=0) as file:
                # A pipe stays open: to who reads it, it would have ended.
                self._pipe = None if file.seekable() else os.dup(file.fileno())
        except OSError as error:
            raise SettingsError(f"--progress-file {path} cannot be written: {error.strerror}") from error
        if self._pipe is not None:
            weakref.finalize(self, os.close, self._pipe)
        self._path = path
        self._max_bytes = max_bytes

    def publish(self, progress: Progress) -> None:
        line = progress.model_dump_json().encode() + b"\n"
        if self._pipe is not None:
            with open(self._pipe, "wb", closefd=False) as pipe:
                pipe.write(line)
            return
        # Opened each time: once a batch it costs nothing, and a file that was moved away is begun anew.
        with self._path.open("ab", buffering=0) as file:
            size = file.tell()
            file.write(line if self._ends_a_line(size) else b"\n" + line)
        if size + len(line) > self._max_bytes:
            # The file itself, and not a link to it, as /dev/stdout is one.
            own = self._path.resolve()
            own.replace(own.with_name(f"{own.name}.1"))

    def _ends_a_line(self, size: int) -> bool:
        # A machine that lost power may have left half a line.
        if size == 0:
            return True
        with self._path.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) == b"\n"


def read_progress(path: Path) -> list[Progress]:
    """The batches in a file that `JsonLinesProgress` writes, oldest first; none if there is no file yet.

    A last line without its end is being written, and left out.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    complete = content[: content.rfind(b"\n") + 1]
    return [Progress.model_validate_json(line) for line in complete.splitlines() if line]
