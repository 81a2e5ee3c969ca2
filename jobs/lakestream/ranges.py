"""Files for Arrow that are got in ranges."""

from __future__ import annotations

from collections.abc import Callable


class Ranges:
    """A file of which Arrow gets what it needs.

    Args:
        get: the bytes from one offset up to another one.
        size: of all of it.
    """

    closed = False

    def __init__(self, get: Callable[[int, int], bytes], size: int) -> None:
        self._get, self._size = get, size
        self._at = 0
        self.failed: Exception | None = None
        """Arrow hands on that something failed, but not always what."""

    def read(self, size: int | None = None) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        try:
            found = self._get(self._at, end)
        except Exception as error:
            self.failed = error
            raise
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def close(self) -> None: ...
