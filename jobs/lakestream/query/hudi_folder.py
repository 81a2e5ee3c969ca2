"""A Hudi table as its folder tells it: properties, timeline, and how far back its files reach."""

from __future__ import annotations

import io
import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import fastavro
import obstore

from lakestream.errors import LakeStreamError, SettingsError
from lakestream.places import PROPERTIES
from lakestream.query.errors import FilesGoneError, UnreadableError
from lakestream.query.history import History, Version
from lakestream.query.properties import parse_properties
from lakestream.query.timeline import REPLACE, SAVEPOINT, Instant, Listed, Timeline
from lakestream.storage import ObjectNotFoundError, StoreSettings, exists, open_store, translated

_PROPERTIES, _COPY = (f".hoodie/{name}" for name in PROPERTIES)
_CONCURRENT_GETS = 16
_TIMELINES = {"1": ".hoodie", "2": ".hoodie/timeline"}
"""Where the timeline is, by the version of its layout: 1 up to table version 6, 2 from 8 on."""
_ARCHIVES = {"1": ".hoodie/archived", "2": ".hoodie/timeline/history"}
_UNDONE = ".hoodie/lakestream/rolled-back"
_REMOVE = ("clean", "restore")
"""Actions that delete files of versions."""


@dataclass(frozen=True)
class HudiFolder:
    """One look at a table; what was read stays as it was then."""

    place: StoreSettings
    properties: dict[str, str]
    timeline: Timeline

    @classmethod
    def look(cls, place: StoreSettings) -> HudiFolder:
        """Read the properties and list the timeline.

        Raises:
            SettingsError: no Hudi table.
            UnreadableError: a table of a layout that is not known here; or one without properties, but for their copy.
            StorageError, StorageUnavailableError: of the store.
        """
        try:
            properties = parse_properties(read(place, _PROPERTIES).decode("latin-1"))  # as Java reads them
        except ObjectNotFoundError:
            raise _without_properties(place) from None
        if (layout := properties.get("hoodie.timeline.layout.version", "")) not in _TIMELINES:
            raise UnreadableError(
                f"the table at {place.path} has timeline layout {layout or 0} (table version "
                f"{properties.get('hoodie.table.version')}), and layouts 1 and 2 are known here"
            )
        return cls(place, properties, _timeline(place, properties))

    @property
    def told(self) -> str:
        """Name and type, for people."""
        kind = "merge on read" if self.timeline.merges_on_read else "copy on write"
        return f"{self.properties.get('hoodie.table.name', self.place.path)} (Hudi, {kind})"

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Columns that make the partition path."""
        fields = self.properties.get("hoodie.table.partition.fields", "")
        # A table of another writer may have the key generator's type behind each: `dt:SIMPLE`.
        return tuple(field.partition(":")[0] for field in fields.split(",") if field)

    @property
    def is_in_utc(self) -> bool:
        """Whether its instants are; by Hudi's default they are in the zone of who writes them, which is not told."""
        return self.properties.get("hoodie.table.timeline.timezone") == "UTC"

    @cached_property
    def columns(self) -> dict[str, Any]:
        """Avro's type of each column, as the newest commit says it."""
        said = self._newest_batch()
        schema = json.loads((said.get("extraMetadata") or {}).get("schema") or "{}")
        return {field["name"]: field["type"] for field in schema.get("fields", ())}

    @cached_property
    def history(self) -> History:
        """The batches that are in the active timeline.

        Hudi's cleaner says up to which instant nothing is missing; of older ones it may have removed files, and a
        reader would give a part of the rows without a word.
        """
        batches = self._batches
        # In the order in which they were made: times of objects may be those of a copy.
        times = accumulate((one.completed_at or one.requested_at for one in batches), max)
        versions = tuple(Version(one.requested, time) for one, time in zip(batches, times, strict=True))
        kept = self.kept_from
        # What was there at that instant is what the batch before it has left.
        first = 0 if kept is None else max(0, bisect_right([one.requested for one in batches], kept) - 1)
        return History(
            versions,
            min(first, max(0, len(versions) - 1)),
            begins=not self._is_archived,
            merges=tuple(one.requested for one in self._clusterings),
            saved=tuple(one.requested for one in self.timeline.completed(SAVEPOINT)),
        )

    @cached_property
    def kept_from(self) -> str | None:
        """The instant from which on the cleaner keeps all files; None if nothing was cleaned yet.

        A clean deletes by its plan before it is completed, and one whose driver has died goes on later.
        """
        done = self.timeline.completed("clean")
        plans = [one for one in self.timeline.pending if one.action == "clean"]
        kept = [self._kept_by(done[-1])] if done else []
        return max(filter(None, [*kept, *map(self._planned_to_keep, plans)]), default=None)

    def _kept_by(self, clean: Instant) -> str:
        said: dict[str, str] = self.metadata(clean)
        if "earliestCommitToRetain" not in said:
            raise UnreadableError(
                f"{self._key_of(clean)} of {self.place.path} does not say of which time files were removed: it is "
                "damaged, or being written just now"
            )
        return said["earliestCommitToRetain"] or self._last_before(clean)

    def _planned_to_keep(self, clean: Instant) -> str | None:
        # Its newest object is empty once it is in flight.
        plan = {}
        with suppress(FilesGoneError):  # it was given up
            plan = self.metadata(replace(clean, file=f"{clean.requested}.clean.requested"))
        if not plan:
            return None
        return (plan.get("earliestInstantToRetain") or {}).get("timestamp") or self._last_before(clean)

    def _last_before(self, clean: Instant) -> str:
        """By `KEEP_LATEST_FILE_VERSIONS` no instant is kept as such: certain is what was there when it was begun."""
        return max((one.requested for one in self._batches if one.requested < clean.requested), default=clean.requested)

    def require_kept(self, version: Version | None) -> None:
        """Look once more, after reading: readers pass over files that were gone before they listed them.

        Args:
            version: the oldest that was read; None: nothing was.

        Raises:
            FilesGoneError: files of it may have been removed meanwhile.
            StorageError, StorageUnavailableError: of the store.
        """
        again = replace(self, timeline=_timeline(self.place, self.properties))
        # One that was under way then has gone on.
        under_way = {one.requested for one in self.timeline.pending}
        if version is None or again._removals <= self._removals - under_way:
            return
        history = again.history
        if version.name not in {one.name for one in history.versions[history.first_kept :]}:
            raise FilesGoneError(f"files of {version} were removed while they were read: {history.span}. Ask again")

    @contextmanager
    def reading(self, version: Version | None) -> Iterator[None]:
        """Where an engine reads a version: that it cannot may be since files of it were removed.

        Raises:
            FilesGoneError, StorageError, StorageUnavailableError: as `require_kept`.
        """
        try:
            yield
        except UnreadableError:
            self.require_kept(version)
            raise

    def require_answer(self) -> None:
        """Look for a data file, of the newest commit.

        Raises:
            StorageError, StorageUnavailableError: the store denies it, or does not answer.
        """
        said: dict[str, Any] = {}
        with suppress(FilesGoneError):  # the commit was archived meanwhile
            said = self._newest_batch()
        written = [stat for stats in (said.get("partitionToWriteStats") or {}).values() for stat in stats]
        exists(self.place, next((stat["path"] for stat in written if stat.get("path")), _PROPERTIES))

    @property
    def _removals(self) -> Set[str]:
        return {one.requested for one in self.timeline.instants if one.action in _REMOVE}

    def as_of(self, version: Version) -> str:
        """The instant to read a version as of: the last one before another batch.

        Compactions and clusterings that came between change no row, and leave fewer files to read; of the oldest
        version that is kept, it may be their files alone that are. In layout 2 log files are on top of a compaction
        that was planned before they were completed, also while it is not done.
        """
        writes = [*self.timeline.batches, *self.timeline.compactions]
        if self.timeline.layout == 2:
            writes += [one for one in self.timeline.pending if one.action == "compaction"]
        later = [one.requested for one in self._batches if one.requested > version.name]
        return max(one.requested for one in writes if not later or one.requested < later[0])

    @cached_property
    def _batches(self) -> tuple[Instant, ...]:
        merges = set(self._clusterings)
        return tuple(one for one in self.timeline.batches if one not in merges)

    @cached_property
    def _clusterings(self) -> tuple[Instant, ...]:
        """They merge files beside the batches, and change no row. One may end long after batches that were begun later:
        among the versions, its time would become that of each of them."""
        return tuple(one for one, said in self._replaces if said.get("operationType") == "CLUSTER")

    @cached_property
    def _replaces(self) -> list[tuple[Instant, dict[str, Any]]]:
        """What replaced file groups, and what it says; one request for each that is in the timeline."""
        found = self.timeline.completed(REPLACE)
        return list(zip(found, self.metadata_of(found), strict=True))

    @cached_property
    def _is_archived(self) -> bool:
        entries = listed(self.place, _ARCHIVES[str(self.timeline.layout)])
        return any(entry.name.endswith(".parquet") or entry.name.startswith(".commits_") for entry in entries)

    @cached_property
    def replaced_groups(self) -> frozenset[tuple[str, str]]:
        """Partition and file group of what clusterings have replaced."""
        return frozenset(
            (partition, group)
            for _, metadata in self._replaces
            for partition, groups in (metadata.get("partitionToReplaceFileIds") or {}).items()
            for group in groups
        )

    def metadata_of(self, instants: Sequence[Instant]) -> list[dict[str, Any]]:
        """`metadata` of each; many are asked for at a time."""
        with ThreadPoolExecutor(_CONCURRENT_GETS) as pool:
            return list(pool.map(self.metadata, instants))

    def _newest_batch(self) -> dict[str, Any]:
        """`metadata` of the newest commit; empty if there is none."""
        return self.metadata(self.timeline.batches[-1]) if self.timeline.batches else {}

    def metadata(self, instant: Instant) -> dict[str, Any]:
        """What an instant's newest object says, as Hudi writes it; empty if nothing.

        Raises:
            FilesGoneError: it is not there any more.
            UnreadableError: it is damaged.
        """
        key = self._key_of(instant)
        try:
            content = read(self.place, key)
        except ObjectNotFoundError as error:
            said = f"the instant {instant.requested} was archived or undone since the timeline was listed"
            raise FilesGoneError(f"{self.place.path}: {said}. Ask again") from error
        if not content:
            return {}
        try:
            if content.startswith(b"{"):  # as commits are in layout 1
                found: dict[str, Any] = json.loads(content)
                return found
            for record in fastavro.reader(io.BytesIO(content)):
                assert isinstance(record, dict)
                return record
        except (ValueError, EOFError, KeyError) as error:
            raise UnreadableError(f"{self.place.path}/{key} is damaged: {error}") from error
        return {}

    def _key_of(self, instant: Instant) -> str:
        return f"{_TIMELINES[str(self.timeline.layout)]}/{instant.file}"


def _timeline(place: StoreSettings, properties: dict[str, str]) -> Timeline:
    layout = properties["hoodie.timeline.layout.version"]
    return Timeline.of(
        listed(place, _TIMELINES[layout]),
        merges_on_read=properties.get("hoodie.table.type") == "MERGE_ON_READ",
        layout=int(layout),
        undone=frozenset(entry.name for entry in listed(place, _UNDONE)),
    )


def _without_properties(place: StoreSettings) -> LakeStreamError:
    if exists(place, _COPY):
        return UnreadableError(
            f"the table at {place.path} has but a copy of {_PROPERTIES}: it is being written anew, or somebody died at "
            "that. Ask again; if it stays so, start the table's writer, which brings it back"
        )
    return SettingsError(f"{place.path} is no Hudi table: it has no {_PROPERTIES}")


def read(place: StoreSettings, key: str) -> bytes:
    """An object below a place.

    Raises:
        ObjectNotFoundError: there is none.
    """
    with translated(f"read {key} under {place.path}"):
        return bytes(obstore.get(open_store(place), key).bytes())


def listed(place: StoreSettings, folder: str) -> Iterator[Listed]:
    """The objects in a folder, without those in folders of it."""
    with translated(f"list {folder} under {place.path}"):
        for meta in obstore.list_with_delimiter(open_store(place), folder)["objects"]:
            yield Listed(meta["path"].rpartition("/")[2], meta["last_modified"])
