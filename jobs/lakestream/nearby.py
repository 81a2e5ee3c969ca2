"""What there is where somebody has looked in vain."""

from __future__ import annotations

import os
from dataclasses import replace

import obstore
from obstore.exceptions import BaseError

from lakestream.storage import Scheme, StoreSettings, open_store

_NAMED = 6


def nearby(place: StoreSettings) -> str:
    """What is in a folder, or else in the nearest one above it, in words; empty if nobody can tell."""
    path = place.path
    while path.key:
        if names := _names(replace(place, path=path)):
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            return f"; {path} has {', '.join(names[:_NAMED])}{more}"
        path = replace(path, key=path.key.rpartition("/")[0])
    return ""


def _names(place: StoreSettings) -> list[str]:
    """The first ones; of S3 those in one answer to a listing."""
    path = place.path
    try:
        if path.scheme is Scheme.FOLDER:
            return sorted(os.listdir(str(path)))
        page = next(obstore.list(open_store(place.root), path.key), [])
    except (OSError, BaseError):
        return []
    return sorted({meta["path"][len(path.key) + 1 :].partition("/")[0] for meta in page})
