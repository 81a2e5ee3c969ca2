"""Copies ledger files that still grow to a place that outlives the machine.

A worker's file is shipped in parts, `<prefix>.ledger/<offset of its first byte>`: what has been appended since the last
part. A part is never changed: a request for one that is there already, as of a shipper that was killed in it, has no
effect. So whoever ships next goes on where the parts end.
"""

from __future__ import annotations

import os
from pathlib import Path

from lakestream_loadgen.errors import LedgerError
from lakestream_loadgen.ledger import SUFFIX
from lakestream_loadgen.storage import Folder

PART_BYTES = 8 * 2**20
"""At most of a part: after an outage of the store there is much to ship, and little memory to do it with."""


class LedgerShipper:
    """Ships the ledgers in a folder. One at a time may ship a file."""

    def __init__(self, source: Path, target: Folder) -> None:
        self._source = source
        self._target = target
        self._shipped: dict[str, int] = {}
        for name, parts in parts_of(target.sizes()).items():
            last = max(parts)
            self._shipped[name] = last + parts[last]

    def ship(self) -> int:
        """Ship what has been appended since the last time; returns the number of bytes.

        Raises:
            LakeError: the target cannot be written; the next call tries again.
            LedgerError: a ledger cannot be read, and all others are shipped; likewise.
        """
        count, unreadable = 0, None
        for path in sorted(self._source.glob(f"*{SUFFIX}")):
            try:
                count += self._ship(path)
            except OSError as error:  # those of the target are LakeErrors
                unreadable = unreadable or (path, error)
        if unreadable is not None:
            path, cause = unreadable
            raise LedgerError(f"{path} cannot be read: {cause.strerror}") from cause
        return count

    def _ship(self, path: Path) -> int:
        begin = offset = self._shipped.get(path.name, 0)
        with path.open("rb") as file:
            # What is appended meanwhile is the next call's: this one would have no end.
            end = file.seek(0, os.SEEK_END)
            while offset < end:
                file.seek(offset)
                part = self._target.add(f"{path.name}/{offset:020d}", file.read(min(PART_BYTES, end - offset)))
                offset = self._shipped[path.name] = offset + part
        return offset - begin


def parts_of(sizes: dict[str, int]) -> dict[str, dict[int, int]]:
    """The sizes of all parts by their offsets, by the names of the ledgers that they are of."""
    ledgers: dict[str, dict[int, int]] = {}
    for key, size in sizes.items():
        name, slash, offset = key.rpartition("/")
        if slash and name.endswith(SUFFIX) and offset.isdigit():
            ledgers.setdefault(name, {})[int(offset)] = size
    return ledgers


def join(folder: Folder, name: str, parts: dict[int, int]) -> bytes:
    """The bytes of a ledger that was shipped in these parts.

    Raises:
        LedgerError: a part is missing.
    """
    data = bytearray()
    for offset in sorted(parts):
        if offset != len(data):
            raise LedgerError(f"{folder.location}/{name}: the part from byte {len(data)} to {offset} is missing")
        data += folder.read(f"{name}/{offset:020d}")
    return bytes(data)
