"""What there is where somebody has looked in vain."""

from __future__ import annotations

import os
from dataclasses import replace

import obstore

from lakestream.errors import LakeStreamError
from lakestream.storage import Scheme, StoreSettings, open_store, translated

_NAMED = 6


def nearby(place: StoreSettings) -> str:
    """What is in a folder, or else in the nearest one above it, to be added to a message; empty if nothing is."""
    path = place.path
    while True:
        try:
            names = _names(replace(place, path=path))
        except LakeStreamError as error:
            return f"; {error}"
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            return f"; {path} has {', '.join(names[:_NAMED])}{more}"
        if not path.key:
            return ""
        path = replace(path, key=path.key.rpartition("/")[0])


def _names(place: StoreSettings) -> list[str]:
    """The first ones; of S3 those in one answer to a listing."""
    path = place.path
    if path.scheme is Scheme.FOLDER:
        try:
            return sorted(name for name in os.listdir(str(path)) if not name.startswith("."))
        except OSError:
            return []
    with translated(f"list {path}"):
        page = next(obstore.list(open_store(place.root), path.key or None), [])
    return sorted({meta["path"].removeprefix(path.key).strip("/").partition("/")[0] for meta in page})
