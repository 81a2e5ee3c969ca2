"""What a table's folder holds."""

from __future__ import annotations

from dataclasses import dataclass

import obstore

from lakestream.storage import StoreSettings, open_store

_TIMELINE = ".hoodie/"
_PARTITION_MARKER = ".hoodie_partition_metadata"


@dataclass(frozen=True)
class FolderSize:
    """Data files of a table."""

    files: int
    bytes: int


def folder_size(place: StoreSettings) -> FolderSize:
    """Count the data files, those included that newer ones have replaced; Hudi's own bookkeeping is left out."""
    sizes = [
        entry["size"]
        for page in obstore.list(open_store(place))
        for entry in page
        if not entry["path"].startswith(_TIMELINE) and not entry["path"].endswith(_PARTITION_MARKER)
    ]
    return FolderSize(len(sizes), sum(sizes))
