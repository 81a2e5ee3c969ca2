"""The folder of a journal: who has it, the key of its tokens, its segments."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lakestream_localkinesis.core.token import KEY_BYTES
from lakestream_localkinesis.errors import StartupError

logger = logging.getLogger(__name__)

Write = Callable[[int, memoryview], int]
"""`os.write`: a descriptor and bytes to how many of them were written."""

_SUFFIX = ".journal"
_SEGMENT = re.compile(r"[0-9]{12,}\.journal")
_UNFINISHED = ".new"
_KEY = "key"


@dataclass(eq=False, slots=True)
class Segment:
    """One file of a journal."""

    path: Path
    size: int = 0
    newest_ms: dict[str, int] = field(default_factory=dict)
    """The latest arrival of each stream's records in it, by the stream's id."""

    @property
    def number(self) -> int:
        """Its place in the order."""
        return int(self.path.stem)


def _is_ours(name: str) -> bool:
    return name == _KEY or _SEGMENT.fullmatch(name) is not None


class Folder:
    """A folder that this process alone has, until `close`."""

    def __init__(self, path: Path, write: Write = os.write) -> None:
        """Make the folder if it is not there, and take it.

        Raises:
            StartupError: another process has it, or it cannot be written to.
        """
        self.path = path
        self._write = write
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._take()
            for unfinished in path.glob(f"*{_UNFINISHED}"):
                # Others may be somebody's own: nobody has said that nothing else is kept here.
                if _is_ours(unfinished.name.removesuffix(_UNFINISHED)):
                    unfinished.unlink()
        except OSError as error:
            raise StartupError(f"{path} cannot be used for the data: {error}") from error

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def key(self) -> bytes:
        """What seals the tokens of the server: made once, for its owner's eyes alone.

        Raises:
            StartupError: it cannot be read or written, or is none.
        """
        path = self.path / _KEY
        try:
            key = path.read_bytes() if path.exists() else None
            if key is not None and len(key) == KEY_BYTES:
                return key
            if key:
                raise StartupError(
                    f"{path} has {len(key)} bytes, and a key has {KEY_BYTES}: remove it, and a new one is made; "
                    "iterators and tokens that clients have are refused then"
                )
            if key is not None:
                logger.warning(
                    "%s is empty: a new key is made, and iterators and tokens that clients have are refused", path
                )
            key = os.urandom(KEY_BYTES)
            os.close(self.create(path, key, sync=True))
        except OSError as error:
            raise StartupError(f"{path}: {error}") from error
        return key

    def segments(self) -> list[Segment]:
        """Those that are there, in order. A copy that somebody made has another name, and would be read twice."""
        named = [path for path in sorted(self.path.glob(f"*{_SUFFIX}")) if _SEGMENT.fullmatch(path.name)]
        return [Segment(path, path.stat().st_size) for path in named]

    def segment_path(self, number: int) -> Path:
        """The name of a segment."""
        return self.path / f"{number:012d}{_SUFFIX}"

    def create(self, path: Path, data: bytes, *, sync: bool = False) -> int:
        """A file that has these bytes from the first moment on; a descriptor that appends to it.

        `sync`: also after a loss of power, which otherwise may leave it empty.
        """
        unfinished = path.with_name(path.name + _UNFINISHED)
        unfinished.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, 0o600)
        try:
            self.append(descriptor, data)
            if sync:
                os.fsync(descriptor)
            unfinished.rename(path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def append(self, descriptor: int, data: bytes) -> None:
        """Write all of it, or raise."""
        left = memoryview(data)
        while left:
            left = left[self._write(descriptor, left) :]

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._lock, 200).decode(errors="replace").strip()
            os.close(self._lock)
            raise StartupError(
                f"{self.path} is in use by another server ({holder}): stop that one, or give this one another folder"
            ) from error
        os.ftruncate(self._lock, 0)
        # Who it is is told to others if there is room for it.
        with suppress(OSError):
            self.append(self._lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
