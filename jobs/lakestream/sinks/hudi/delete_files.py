"""Deletes that outlive the driver: which files have them, and what may be removed when.

Hudi forgets a key that it deletes (a copy-on-write table at once, a merge-on-read table when it compacts), and an older
version of the key that arrives later would be inserted as a new row. So the sink remembers deletes for a while.

A version that is older than a delete of its key never counts, in whatever order the two arrive. So to know a delete
twice is to know it once, and it is enough that at every moment each is in one chunk at least: a folder of data, which
counts once its manifest is there. Names are never used twice. A manifest goes before its data does: what a kill leaves
is data that nobody reads, and the next start removes it.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import uuid4

import orjson

logger = logging.getLogger(__name__)

_MOST = 16
"""Chunks of one batch each, after which one with all of them takes their place: what each batch has to read."""

_MOST_KEYS = 50_000
"""Deletes in them, after which the same is done, if they are more than there were before."""

_MANIFEST = ".json"


class Files(Protocol):
    """Files and folders in one place, by name."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file."""
        ...

    def get(self, name: str) -> bytes:
        """The content, which may be cut short if the writer was killed."""
        ...

    def list(self) -> list[str]: ...
    def delete(self, name: str) -> None: ...

    def clear(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some deletes."""

    name: str
    """Of the folder of its data."""
    keys: int
    newest: float
    """By when the newest of them had come: seconds since 1970."""
    merged: bool
    """Made of the chunks before it."""


WriteData: TypeAlias = Callable[[str], int]
"""Writes the data of a new chunk into the folder of that name; returns the number of keys."""


class DeleteFiles:
    """The chunks of a table. Every method may be cut off between any two effects, and loses nothing."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.chunks: tuple[Chunk, ...] = ()

    @property
    def keys(self) -> int:
        """Deletes that are remembered; one that several chunks have counts in each."""
        return sum(chunk.keys for chunk in self.chunks)

    def load(self) -> None:
        """Read what earlier drivers have left, and remove what they did not finish."""
        names = set(self._files.list())
        manifests = sorted(name for name in names if name.endswith(_MANIFEST))
        found = {name: _decode(self._files.get(name)) for name in manifests}
        # Without its data, one came when its driver was gone, by a request that was long on its way. Its data was
        # removed as what a kill had left, and its batch is written again, with its deletes.
        found = {name: chunk if chunk and chunk.name in names else None for name, chunk in found.items()}
        self.chunks = tuple(chunk for chunk in found.values() if chunk is not None)
        for name in manifests:
            if found[name] is None:
                _try(self._files.delete, name)
        for name in names - set(manifests) - {chunk.name for chunk in self.chunks}:
            _try(self._files.clear, name)

    def remember(self, write: WriteData, newest: float) -> None:
        """Add a chunk."""
        self._add(write, newest, merged=False)

    def expire(self, before: float) -> None:
        """Forget chunks of which every delete had come before a time; nothing else bounds what is remembered."""
        self._remove([chunk for chunk in self.chunks if chunk.newest < before])

    @property
    def is_scattered(self) -> bool:
        """Whether it is time to `merge`."""
        merged = sum(chunk.keys for chunk in self.chunks if chunk.merged)
        return len(self.chunks) > _MOST or self.keys - merged > max(merged, _MOST_KEYS)

    def merge(self, write: WriteData) -> None:
        """Let one chunk take the place of all; `write` gives it what is to be remembered of theirs."""
        replaced = self.chunks
        self._add(write, max(chunk.newest for chunk in replaced), merged=True)
        self._remove(replaced)

    def _add(self, write: WriteData, newest: float, *, merged: bool) -> None:
        name = f"{newest:015.3f}-{uuid4().hex[:12]}"
        chunk = Chunk(name, write(name), newest, merged)
        self._files.put(f"{name}{_MANIFEST}", orjson.dumps(chunk))
        self.chunks = (*self.chunks, chunk)

    def _remove(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = tuple(chunk for chunk in self.chunks if chunk not in chunks)
        for chunk in chunks:
            if _try(self._files.delete, f"{chunk.name}{_MANIFEST}"):
                _try(self._files.clear, chunk.name)


def _try(remove: Callable[[str], object], name: str) -> bool:
    """Whether it could be removed. What stays costs storage, and time when a driver starts, and stops nothing."""
    try:
        remove(name)
    except Exception:
        logger.warning("%s, of deletes that need not be remembered any more, cannot be removed", name, exc_info=True)
        return False
    return True


def decode_earlier(content: bytes) -> list[tuple[str, int | float | str, float]]:
    """Key, version and time of the deletes in a file of the releases that kept all of them in the driver."""
    try:
        return [(key, ordering, seen) for key, _, ordering, seen in orjson.loads(zlib.decompress(content))]
    except (zlib.error, orjson.JSONDecodeError):
        return []


def _decode(content: bytes) -> Chunk | None:
    """None: it was cut short, before its batch was written; so the batch is written again."""
    try:
        return Chunk(**orjson.loads(content))
    except orjson.JSONDecodeError:
        return None
