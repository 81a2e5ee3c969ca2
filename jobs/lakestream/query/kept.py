"""Where an answer is kept that Spark itself writes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import obstore

from lakestream.errors import SettingsError
from lakestream.query.target import Target, place_at
from lakestream.storage import Scheme, StoreSettings, open_store, translated

_UNFINISHED = "_temporary"
"""Folder in which Spark's tasks write until all have ended; one that was killed leaves it."""


def kept_at(path: str, target: Target, now: datetime, *, on_cluster: bool) -> StoreSettings:
    """A place for an answer, at which there is nothing but what an attempt that was killed has left.

    Args:
        path: a folder, or s3://…; `{date}` in it is the day, in UTC, so that what is scheduled has a new one each day.
        target: the table that is asked; on S3, the place is where it is.
        now: the time.
        on_cluster: whether the tasks that write are on other machines.

    Raises:
        SettingsError: something is there, or it is no place for all tasks, or in the table.
        StorageError, StorageUnavailableError: of the store.
    """
    place = place_at(path.replace("{date}", f"{now:%Y-%m-%d}"), target.table.s3)
    if f"{place.path}/".startswith(f"{target.table.path}/"):
        raise SettingsError(
            f"--to {path}: that is in the table itself, whose readers would meet it; give another place"
        )
    if place.path.scheme is Scheme.FOLDER:
        if on_cluster:
            raise SettingsError(f"--to {path}: with --cluster each pod would have a folder of its own; give s3://…")
        if not Path(str(place.path)).exists():
            return place
    with translated(f"list {place.path}"):
        for page in obstore.list(open_store(place)):
            for meta in page:
                # An empty name is that of the folder itself, as some clients mark it.
                if meta["path"].partition("/")[0] not in ("", _UNFINISHED):
                    raise SettingsError(f"--to: {place.path} is not empty ({meta['path']}), and is not written over")
    return place


def take_back(place: StoreSettings) -> None:
    """Delete an answer that is none.

    Raises:
        StorageError, StorageUnavailableError: of the store.
    """
    store = open_store(place)
    with translated(f"delete what is under {place.path}"):
        obstore.delete(store, [meta["path"] for page in obstore.list(store) for meta in page])
