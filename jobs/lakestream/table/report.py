"""What is told of a table; as JSON it has these names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lakestream.log import BatchFiles, Outcome, ServiceRequest
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.timeline import SAVEPOINT, Instant, State
from lakestream.table.files import SMALL, Files, Slices, StoredFile

BATCH_MARK = "lakestream.batch"
"""As the Hudi sink marks its commits; its own module loads Spark."""


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the timeline, and what it did."""

    instant: str
    action: str
    """`compaction` also where Hudi says commit: then it changed no row."""
    state: str
    completed_at: datetime | None
    seconds: float | None
    """From its beginning to its completion."""
    batch: int | None = None
    """The batch of the writer that it is."""
    rows: int | None = None
    """Inserted and updated."""
    deletes: int | None = None
    files: int | None = None
    """Written; of a clean, removed."""
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Unusable records of the writer."""

    records: int
    files: int
    last: datetime | None
    """When a batch with such records was committed last."""

    @classmethod
    def of(cls, batches: Iterable[BatchFiles]) -> Quarantine:
        with_any = [batch for batch in batches if batch.rejects]
        entries = [entry for batch in with_any for entry in batch.rejects]
        return cls(sum(entry.rows for entry in entries), len(entries), with_any[-1].committed_at if with_any else None)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A commit whose files are not cleaned."""

    instant: str
    """Of the commit."""
    completed_at: datetime | None
    """When the savepoint was made."""
    comment: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The newest request for work on the table."""

    number: int
    work: str
    requested_at: datetime
    ended_at: datetime | None
    """None: the writer's driver has not carried it out yet."""
    error: str
    """Why it was not done; empty: it was, or it waits."""

    @classmethod
    def of(cls, request: ServiceRequest, outcome: Outcome | None) -> Asked:
        ended, error = (None, "") if outcome is None else (outcome.ended_at, outcome.error)
        return cls(request.number, request.work.value, request.requested_at, ended, error)


@dataclass(frozen=True, slots=True)
class HudiReport:
    """A Hudi table."""

    path: str
    name: str
    type: str
    version: str
    key: str
    ordering: str
    partition_by: str
    layout: str
    """How keys are spread over files: `bucket:4`, or `free`."""
    slices: Slices
    timeline: tuple[Action, ...]
    """The newest entries, oldest first."""
    instants: int
    """In the active timeline."""
    readable_since: datetime | None
    """How far time travel reaches back."""
    savepoints: tuple[Savepoint, ...]
    """Oldest first."""
    quarantine: Quarantine | None
    """None: the checkpoint of the writer is not known."""
    asked: Asked | None
    """None: nobody has asked for work, or the checkpoint of the writer is not known."""


@dataclass(frozen=True, slots=True)
class JsonReport:
    """A table of JSON files."""

    path: str
    partitions: int
    batches: int
    rows: int
    files: Files
    small: Files
    first_commit: datetime | None
    last_commit: datetime | None
    quarantine: Quarantine


def hudi_report(
    folder: HudiFolder,
    slices: Slices,
    actions: Iterable[Action],
    rejects: Quarantine | None,
    asked: Asked | None,
) -> HudiReport:
    """Put together what was found."""
    property_of = folder.properties.get
    kept = folder.history.versions[folder.history.first_kept :]
    return HudiReport(
        path=str(folder.place.path),
        name=property_of("hoodie.table.name", ""),
        type=property_of("hoodie.table.type", ""),
        version=property_of("hoodie.table.version", ""),
        key=property_of("hoodie.table.recordkey.fields", ""),
        ordering=property_of("hoodie.table.ordering.fields", ""),
        partition_by=", ".join(folder.partition_fields),
        layout=property_of("lakestream.layout", ""),
        slices=slices,
        timeline=tuple(actions),
        instants=len(folder.timeline.instants),
        readable_since=kept[0].at if kept else None,
        savepoints=savepoints_of(folder),
        quarantine=rejects,
        asked=asked,
    )


def savepoints_of(folder: HudiFolder) -> tuple[Savepoint, ...]:
    """The savepoints of a table, oldest first; one request each."""
    return tuple(
        Savepoint(one.requested, one.completed_at, folder.metadata(one).get("comments", ""))
        for one in folder.timeline.completed(SAVEPOINT)
    )


def json_report(path: str, batches: tuple[BatchFiles, ...]) -> JsonReport:
    """What the manifests of a writer say."""
    wrote = [batch for batch in batches if batch.files]
    entries = [entry for batch in wrote for entry in batch.files]
    files = [StoredFile(entry.path, entry.bytes) for entry in entries]
    return JsonReport(
        path=path,
        partitions=len({entry.partition for entry in entries}),
        batches=len(wrote),
        rows=sum(entry.rows for entry in entries),
        files=Files.of(files),
        small=Files.of(file for file in files if file.bytes < SMALL),
        first_commit=wrote[0].committed_at if wrote else None,
        last_commit=wrote[-1].committed_at if wrote else None,
        quarantine=Quarantine.of(batches),
    )


def action_of(instant: Instant, metadata: Mapping[str, Any], *, compacts: bool) -> Action:
    """What an instant did, by the metadata that Hudi has kept of it.

    Args:
        instant: of any state.
        metadata: empty where it is not completed.
        compacts: whether its `commit` is a compaction.
    """
    done = instant.completed_at
    action = Action(
        instant=instant.requested,
        action="compaction" if compacts else instant.action,
        state=instant.state.name.lower(),
        completed_at=done,
        seconds=None if done is None else (done - instant.requested_at).total_seconds(),
    )
    if instant.state is not State.COMPLETED or instant.action == SAVEPOINT:
        return action
    if instant.action == "clean":
        return replace(action, files=metadata.get("totalFilesDeleted"))
    clusters = metadata.get("operationType") == "CLUSTER"
    compacts = compacts or clusters
    stats = [stat for stats in (metadata.get("partitionToWriteStats") or {}).values() for stat in stats]
    batch = (metadata.get("extraMetadata") or {}).get(BATCH_MARK)
    return replace(
        action,
        action="clustering" if clusters else action.action,
        batch=None if batch is None else int(batch),
        # What compactions and clusterings write are the rows that are there.
        rows=None if compacts else sum(_positive(stat, "numInserts", "numUpdateWrites") for stat in stats),
        deletes=None if compacts else sum(_positive(stat, "numDeletes") for stat in stats),
        files=sum(stat.get("path") is not None for stat in stats),
        bytes=sum(_positive(stat, "totalWriteBytes") for stat in stats),
    )


def _positive(stat: Mapping[str, Any], *names: str) -> int:
    # Hudi writes -1 for what it does not know.
    return sum(max(int(stat.get(name) or 0), 0) for name in names)
