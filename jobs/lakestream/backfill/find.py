"""The files that somebody means by a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import obstore

from lakestream.errors import RequestError
from lakestream.log import ObstoreLogStore, committed_files
from lakestream.nearby import nearby
from lakestream.places import JSON_SIDE, PROPERTIES
from lakestream.sinks.hive_paths import partition_values
from lakestream.sinks.owner import KEY, read_owner
from lakestream.storage import (
    LakePath,
    ObjectNotFoundError,
    Scheme,
    StoreSettings,
    exists,
    open_store,
    translated,
)

if TYPE_CHECKING:
    from obstore import ObjectMeta


_OF_TABLES = (*(f"/.hoodie/{name}" for name in PROPERTIES), f"/{JSON_SIDE}/{KEY}")
"""How the keys end that tables have, of Hudi and of a JSON writer, behind their folders."""
_UNTOLD = re.compile(r"#\d+$", re.ASCII)
_OF_PARTITION = ".hoodie_partition_metadata"
"""How the name begins of what Hudi puts into each folder of a partition, whatever the folder is called."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file."""

    place: StoreSettings
    size: int
    etag: str
    modified: datetime
    """To the microsecond."""
    folders: tuple[tuple[str, str], ...]
    """Columns and their values, by the names of its folders below what was given, or below the table."""
    table_rows: int | None = None
    """So many rows of a table of JSON files; None: it is of none."""

    @property
    def path(self) -> str:
        """Whole."""
        return str(self.place.path)


def find_files(place: StoreSettings, not_in: LakePath) -> list[Found]:
    """The file, or all below a folder, sorted; without those whose name, or a folder of theirs, begins with _ or a dot;
    but for folders of partitions, as `_shard_id=1`.

    Below the table of a JSON writer these are the files of committed batches.

    Args:
        place: of the file or folder.
        not_in: the table that is written, whose files cannot be meant.

    Raises:
        RequestError: there is nothing; or it is a Hudi table, or the table that is written, or has tables in it; or a
            name is none that a local store tells.
        StorageError, StorageUnavailableError: of the store.
    """
    path, not_in = _own(place.path), _own(not_in)
    place = replace(place, path=path)
    _require_outside(path, not_in)
    if path.scheme is Scheme.FOLDER:
        _require_listable(path)
    listed = [*_listed(place)]
    files = _once(_found(place, meta) for name, meta in listed if not _is_hidden(name))
    if not files:
        is_pattern = any(char in path.key for char in "*?[")
        pattern = "; a pattern is filled in by the shell, which found nothing for it" if is_pattern else ""
        raise RequestError(f"there is nothing at {path}: no file, and no folder with files{pattern}{nearby(place)}")
    for folder in _tables(path, is_file=files[0].place.path == path):
        if any(exists(place.root, (folder / ".hoodie" / name).key) for name in PROPERTIES):
            raise RequestError(
                f"{folder} is a Hudi table, whose files hold rows of the past as well. Write out what it has now: "
                f"lakestream query {folder} -o parquet > rows.parquet; and take that with --rows"
            )
        if exists(place.root, (folder / JSON_SIDE / KEY).key):
            return _committed(StoreSettings(folder, place.s3), path, files)
    if any(_is_of_partition(name) for name, _ in listed):
        raise RequestError(
            f"{path} is part of a Hudi table, whose files hold rows of the past as well. Write out what the table has "
            "now: lakestream query TABLE -o parquet > rows.parquet; and take that with --rows"
        )
    for one in files:
        _require_outside(one.place.path, not_in)
    return files


def _own(path: LakePath) -> LakePath:
    """Of this machine without symbolic links: a file by two names would be taken twice."""
    return path if path.scheme is not Scheme.FOLDER else LakePath.parse(os.path.realpath(str(path)))


def _once(files: Iterable[Found]) -> list[Found]:
    """Files by their own names, each once; with the folders of the first that leads to it."""
    found: dict[str, Found] = {}
    for one in files:
        own = replace(one, place=replace(one.place, path=_own(one.place.path)))
        found.setdefault(own.path, own)
    return [*found.values()]


def _require_outside(path: LakePath, table: LakePath) -> None:
    if path == table or str(path).startswith(f"{table}/"):
        raise RequestError(f"{path} is in the very table that the files are to be taken into")


def _require_listable(place: LakePath) -> None:
    """Raise an error for a name that obstore leaves out of what it lists of a folder, as its own unfinished upload.

    Below the table of a JSON writer it is one, of a driver that was killed: only what the log names is taken there.
    """
    if any(Path(str(table), JSON_SIDE, KEY).is_file() for table in _tables(place, is_file=False)):
        return
    path = Path(str(place))
    names = [one for one in path.rglob("*#*") if one.is_file()] if path.is_dir() else [path]
    for one in names:
        if _UNTOLD.search(one.name) and (one == path or not _is_hidden(one.relative_to(path).as_posix())):
            raise RequestError(f"{one} would be passed over, for its name ends in # and a number: give it another one")


def _listed(place: StoreSettings) -> Iterator[tuple[str, ObjectMeta]]:
    """Each with its name below the path; that of the path itself, if it is a file, is empty."""
    path, store = place.path, open_store(place.root)
    with translated(f"look for {path}"):
        if not path.key or (path.scheme is Scheme.FOLDER and Path(str(path)).is_dir()):
            listed = obstore.list(store, path.key or None).collect()
        else:
            try:
                yield "", obstore.head(store, path.key)
                return
            except FileNotFoundError:
                listed = [] if path.scheme is Scheme.FOLDER else obstore.list(store, path.key).collect()
        below = len(path.key) + 1 if path.key else 0
        for meta in sorted(listed, key=lambda meta: meta["path"]):
            name = meta["path"][below:]
            _require_no_table_in(path, name)
            if name:  # else it is the folder's own marker, as S3's console and Hadoop leave them
                yield name, meta


def _is_hidden(key: str) -> bool:
    # As to Spark, a folder of a partition is none, also by a column like _shard_id.
    return any(name.startswith(".") or (name.startswith("_") and "=" not in name) for name in key.split("/"))


def _is_of_partition(key: str) -> bool:
    folders, _, name = key.rpartition("/")
    return name.startswith(_OF_PARTITION) and not _is_hidden(folders)


def _require_no_table_in(path: LakePath, key: str) -> None:
    """Raise an error if a key below a folder says that there is a table in it: that has more files than it has rows.

    What is passed over anyway counts no more than in the folder itself, as the metadata table within a Hudi table.
    """
    for marker in _OF_TABLES:
        if key.endswith(marker) and not _is_hidden(key.removesuffix(marker)):
            raise RequestError(
                f"{path} has the table {path / key.removesuffix(marker)} in it, whose files are not what it has now. "
                "Name that table, or the other folders, by themselves"
            )


def _found(place: StoreSettings, meta: ObjectMeta) -> Found:
    key = meta["path"]
    below = key[len(place.path.key) :].strip("/").split("/")[:-1]
    partition = "/".join(name for name in below if "=" in name)
    modified = meta["last_modified"].astimezone(UTC)
    if (etag := meta["e_tag"]) is None:
        raise RequestError(f"the store has no ETag of {key}, and nobody could tell whether the file is still the same")
    return Found(place.root / key, meta["size"], etag, modified, _values(partition))


def _values(partition: str) -> tuple[tuple[str, str], ...]:
    return tuple((column, value) for column, value in partition_values(partition).items() if value is not None)


def _tables(path: LakePath, *, is_file: bool) -> Iterator[LakePath]:
    """What may be the table that a path is in: its folder, or the one that the folders of partitions are in."""
    above = path.key.split("/")
    if is_file:
        above.pop()
    yield replace(path, key="/".join(above))
    while above and "=" in above[-1]:
        above.pop()
        yield replace(path, key="/".join(above))


def _committed(table: StoreSettings, path: LakePath, listed: list[Found]) -> list[Found]:
    """Those of the files that are of committed batches of a table of JSON files."""
    owner = read_owner(table / JSON_SIDE)
    log = StoreSettings(LakePath.parse(owner.place), table.s3)
    by_path = {one.path: one for one in listed}
    files = []
    for batch in committed_files(ObstoreLogStore.at(log)):
        for entry in batch.files:
            whole = str(table.path / entry.path)
            if whole != str(path) and not whole.startswith(f"{path}/"):
                continue
            # Its writer goes on: what it has written since the files were listed is not among them.
            if (one := by_path.get(whole) or _looked_up(table, entry.path)) is None:
                raise RequestError(
                    f"{whole} is gone, which batch {batch.batch} of {owner.writer} has written. To take the others, "
                    "name them: lakestream files -f lakestream.yaml --writer NAME"
                )
            files.append(Found(one.place, one.size, one.etag, one.modified, _values(entry.partition), entry.rows))
    if not files:
        raise RequestError(f"{path} has no file of a committed batch of {owner.writer}")
    return files


def _looked_up(table: StoreSettings, name: str) -> Found | None:
    """A file of a table by itself; None: it is not there."""
    path = table.path / name
    try:
        with translated(f"look for {path}"):
            return _found(table, obstore.head(open_store(table.root), path.key))
    except ObjectNotFoundError:
        return None
