"""Tombstones that outlive the driver: small files beside the table's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi.tombstones import Tombstone, Tombstones, decode, encode

_FILES = 64
"""Files with one batch's deletes each, after which one with all of them takes their place: what a start has to read."""


class Files(Protocol):
    """Small files, by name."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file, in the place of one that has the name."""
        ...

    def get(self, name: str) -> bytes:
        """The content, which may be cut short if the writer was killed."""
        ...

    def list(self) -> list[str]: ...
    def delete(self, name: str) -> None: ...


class TombstoneFiles:
    """Keeps `known` and the files in step. Files are only ever superseded by others that say as much."""

    def __init__(self, files: Files, known: Tombstones) -> None:
        self._files = files
        self._known = known
        self._names: list[str] = []

    def load(self, now: float) -> None:
        """Read what earlier drivers have left."""
        self._names = sorted(self._files.list())
        for name in self._names:
            self._known.add(decode(self._files.get(name)), now)

    def remember(self, ref: BatchRef, tombstones: Sequence[Tombstone], now: float) -> None:
        """Add the deletes of a batch; doing so twice is doing it once."""
        if not tombstones:
            return
        self._known.add(tombstones, now)
        name = f"b{ref.batch:012d}-{ref.checkpoint[:8]}"
        replaced = [other for other in self._names if other != name]
        if len(replaced) < _FILES:
            # A replay of a batch that had put all of them into its file must not lose the others.
            self._files.put(name, encode(tombstones if name not in self._names else self._known))
            self._names = [*replaced, name]
            return
        self._files.put(name, encode(self._known))
        for other in replaced:
            self._files.delete(other)
        self._names = [name]
