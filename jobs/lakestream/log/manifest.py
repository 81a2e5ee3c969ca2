"""Manifests: which objects batches wrote, for as long as the objects are there.

Commits say it too, but they expire. So before the commits of a hundred batches do, one object keeps what they said:

    manifests/000000000199.json.gz   the objects of batches 100 to 199

Whoever must not see a batch before it is committed, or half of one, reads the objects that `committed_files` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lakestream.ahead import answers
from lakestream.log.layout import COMMITS, MANIFESTS, number_of, unpack
from lakestream.log.store import LogStore
from lakestream.model import BatchCommit, FileEntry
from lakestream.model.codec import decode, encode, require_count, require_text, require_utc, required_time, time_to_json
from lakestream.storage import ObjectNotFoundError

BATCHES_PER_MANIFEST = 100


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The objects of a committed batch."""

    batch: int
    committed_at: datetime
    """Driver's time of the commit."""
    files: tuple[FileEntry, ...]
    """What the sink wrote, relative to its path; none if it keeps its own manifest (Hudi's timeline)."""
    rejects: tuple[FileEntry, ...]
    """Unusable records, relative to the writer's quarantine."""
    rejected_by: str = ""
    """As in the commit."""
    readmits: tuple[str, ...] = ()
    """As in the commit."""
    back_to: int | None = None
    """Of a restore that has the stream read again: the newest batch that it left. None: it undid nothing."""

    def __post_init__(self) -> None:
        require_count("batch", self.batch)
        require_utc("committed_at", self.committed_at)
        require_text("readmits", *self.readmits)
        if self.back_to is not None:
            require_count("back_to", self.back_to)

    @classmethod
    def of(cls, commit: BatchCommit) -> BatchFiles:
        files = () if commit.sink is None else commit.sink.files
        back_to = commit.restore.batch if commit.restore and commit.restore.rereads else None
        return cls(
            commit.batch, commit.committed_at, files, commit.rejects, commit.rejected_by, commit.readmits, back_to
        )

    @property
    def says_nothing(self) -> bool:
        """Whether the batch neither wrote nor took any object, nor had others that did undone."""
        return not (self.files or self.rejects or self.readmits) and self.back_to is None

    def to_row(self) -> list[Any]:
        files, rejects = ([entry.to_row() for entry in entries] for entries in (self.files, self.rejects))
        return [self.batch, time_to_json(self.committed_at), files, rejects]

    @classmethod
    def from_row(cls, row: list[Any], rejected_by: str, readmits: Iterable[str], back_to: int | None) -> BatchFiles:
        batch, committed_at, *entries = row
        files, rejects = (tuple(FileEntry.from_row(entry) for entry in one) for one in entries)
        return cls(batch, required_time(committed_at), files, rejects, rejected_by, tuple(readmits), back_to)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects of up to a hundred batches."""

    first: int
    """Batches from here on are in it: from a whole hundred, unless a release without manifests has begun the log."""
    batches: tuple[BatchFiles, ...]
    """Those that wrote or took any, ascending."""

    @classmethod
    def of(cls, first: int, batches: Iterable[BatchFiles]) -> Manifest:
        return cls(first, tuple(one for one in batches if not one.says_nothing))

    def to_json(self) -> bytes:
        # Apart from the batches' rows, which earlier releases read as well.
        rejected_by = {str(one.batch): one.rejected_by for one in self.batches if one.rejected_by}
        readmits = {str(one.batch): one.readmits for one in self.batches if one.readmits}
        back = {str(one.batch): one.back_to for one in self.batches if one.back_to is not None}
        return encode(
            "manifest",
            {
                "first": self.first,
                "batches": [one.to_row() for one in self.batches],
                **({"rejectedBy": rejected_by} if rejected_by else {}),
                **({"readmits": readmits} if readmits else {}),
                **({"backTo": back} if back else {}),
            },
        )

    @classmethod
    def from_json(cls, content: bytes) -> Manifest:
        """Raises CorruptLogError if the content is not a manifest that `to_json` wrote."""

        def build(fields: dict[str, Any]) -> Manifest:
            rejected_by, readmits = fields.get("rejectedBy", {}), fields.get("readmits", {})
            back = fields.get("backTo", {})
            batches = ((row, str(row[0])) for row in fields["batches"])
            return cls(
                fields["first"],
                tuple(
                    BatchFiles.from_row(row, rejected_by.get(batch, ""), readmits.get(batch, ()), back.get(batch))
                    for row, batch in batches
                ),
            )

        return decode("manifest", content, build)


def committed_files(store: LogStore) -> Iterator[BatchFiles]:
    """The batches that wrote or took objects, ascending, up to the newest commit; also while a driver goes on.

    Of a log that a release without manifests has begun, those are missing whose commits had expired by then.

    Raises:
        CorruptLogError: an object cannot be decoded.
        StorageError, StorageUnavailableError: of the store.
    """
    done = -1
    while True:
        for key, body in answers(store.get, _after(store, MANIFESTS, done)):
            for one in unpack(key, body, Manifest.from_json).batches:
                if one.batch > done:
                    yield one
            done = number_of(key)
        commits = _after(store, COMMITS, done)
        if commits and number_of(commits[0]) != done + 1 and _after(store, MANIFESTS, done):
            continue  # the commits in between went into a manifest after we had looked for it
        try:
            for key, body in answers(store.get, commits):
                one = BatchFiles.of(unpack(key, body, BatchCommit.from_json))
                if not one.says_nothing:
                    yield one
                done = one.batch
            return
        except ObjectNotFoundError:
            if not _after(store, MANIFESTS, done):
                raise


def rejected_files(store: LogStore) -> tuple[BatchFiles, ...]:
    """The batches with what is still in quarantine of them, without what they wrote, which of a year takes gigabytes.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: as `committed_files`.
    """
    bare = (replace(one, files=()) for one in committed_files(store))
    return without_readmitted(one for one in bare if not one.says_nothing)


def without_readmitted(batches: Iterable[BatchFiles]) -> tuple[BatchFiles, ...]:
    """Batches with what is still in quarantine of them: files that later ones took are left out of `rejects`.

    What an undone batch took is there again, where it is to be read again: its rows are in the table no more, and it is
    open whether the request that took it takes it once more.

    Args:
        batches: all, as `committed_files` tells them.
    """
    known = tuple(batches)
    taken: dict[str, int] = {}
    for one in known:
        if one.back_to is not None:
            taken = {path: by for path, by in taken.items() if by <= one.back_to}
        taken |= dict.fromkeys(one.readmits, one.batch)
    return tuple(
        replace(one, rejects=tuple(entry for entry in one.rejects if entry.path not in taken)) for one in known
    )


def _after(store: LogStore, folder: str, batch: int) -> list[str]:
    return store.list(folder, after=None if batch < 0 else f"{folder}/{batch:012d}.json.gz")
