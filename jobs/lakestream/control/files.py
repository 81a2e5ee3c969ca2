"""Progress as a local file of JSON lines: for the demo, for tests, and for `tail -f`."""

from __future__ import annotations

import errno
import os
import stat
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
            self._pipe = _pipe(path)
        except OSError as error:
            why = "nobody reads this pipe" if error.errno == errno.ENXIO else error.strerror
            raise SettingsError(f"--progress-file {path} cannot be written: {why}") from error
        if self._pipe is not None:
            weakref.finalize(self, os.close, self._pipe)
        self._path = path
        self._max_bytes = max_bytes

    def publish(self, progress: Progress) -> None:
        line = progress.model_dump_json().encode() + b"\n"
        if self._pipe is not None:
            os.write(self._pipe, line)
            return
        # Opened each time: once a batch it costs nothing, and a file that was moved away is begun anew.
        with self._path.open("ab", buffering=0) as file:
            size = file.tell()
            file.write(line if self._ends_a_line(size) else b"\n" + line)
        if size + len(line) > self._max_bytes and (own := _own(self._path)) is not None:
            own.replace(own.with_name(f"{own.name}.1"))

    def _ends_a_line(self, size: int) -> bool:
        # A machine that lost power may have left half a line.
        if size == 0:
            return True
        with self._path.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) == b"\n"


def _pipe(path: Path) -> int | None:
    """Of what is no file, a descriptor that stays open: to who reads a pipe, it would have ended. It waits for nobody:
    what a reader has no room for, it does not get, which is an error of `publish`.

    Raises:
        OSError: it cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def _own(path: Path) -> Path | None:
    """The file that a link leads to; None: that of a process, whose name follows it."""
    while not path.is_relative_to("/proc"):
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    return None


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
