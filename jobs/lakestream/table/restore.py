"""What a restore of a table would come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from lakestream.errors import RequestError, SettingsError
from lakestream.kinesis.lineage import out_of_reach, trim_at, unread_since
from lakestream.log import (
    Back,
    Document,
    LogStore,
    ObstoreLogStore,
    Undone,
    newest_commit,
    newest_definition,
    standing_at,
    undone_behind,
)
from lakestream.model import BatchCommit, Definition, Finished, Standing
from lakestream.query.history import Version, show
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.moments import Commit, Moment
from lakestream.query.target import Kind, Target
from lakestream.query.telling import ago
from lakestream.query.timeline import SAVEPOINT
from lakestream.table.report import Action, action_of


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What would be undone, and what is read again."""

    instant: str
    back: Back
    told: tuple[str, ...]
    """In lines."""


@dataclass(frozen=True, slots=True)
class _Log:
    """What the log says of it."""

    last: BatchCommit
    standing: Standing | None
    """With the commit that the table goes back to; None: nobody knows any more."""
    undone: Undone
    """Empty if that is not known."""


def plan_restore(
    target: Target, to: Moment, definition: Definition | None, now: datetime, *, rereads: bool
) -> RestorePlan:
    """Look what it would come to.

    Args:
        target: the table.
        to: the table as it was then.
        definition: of the document; None: it was not given.
        now: the time.
        rereads: whether the undone batches' records are read again.

    Raises:
        SettingsError: it cannot be; says why, and what there is instead.
        RequestError: there is nothing to undo.
        CorruptLogError, StorageError, StorageUnavailableError: of log and table.
    """
    if target.kind is Kind.JSON:
        raise SettingsError(f"{target.table.path} has JSON files, which are not taken back; Hudi tables are")
    store = ObstoreLogStore.at(target.required_log())
    folder = HudiFolder.look(target.table)
    version = _version(folder, to, now)
    batch = _action(folder, version).batch
    if batch is None:
        raise SettingsError(f"--to: the commit {version} is of no batch of LakeStream")
    undone = _undone(folder, version)
    log = _log_at(store, version.name, batch)
    standing = _standing(log, version, batch, now, rereads=rereads)
    told = (
        f"the table goes back to {version}, batch {batch}, {ago(now - version.at)}",
        _told_undone(undone),
        *(_told_reread(standing, log.undone) if rereads else _told_left_out()),
        *_told_document(store, definition, rereads=rereads),
    )
    return RestorePlan(version.name, Back(standing, rereads, Document.given(store, definition)), told)


def _version(folder: HudiFolder, to: Moment, now: datetime) -> Version:
    """The commit that becomes the newest."""
    history = folder.history
    version = replace(history, first_kept=0).as_of(to, "--to", now)
    saved = {one.requested for one in folder.timeline.completed(SAVEPOINT)}
    if version.name not in saved:
        history.as_of(Commit(version.name), "--to", now)
        if version.name < (folder.kept_from or ""):
            raise SettingsError(f"--to {version}: files of that time may have been cleaned; {history.span}")
    if version == history.newest():
        raise RequestError(f"nothing is to be undone: {version} is the newest commit")
    if later := sorted(one for one in saved if one > version.name):
        raise SettingsError(
            f"a later commit has a savepoint, {later[-1]}, and what has one is not undone: `lakestream table savepoint "
            f"delete {later[-1]}` first"
        )
    return version


def _undone(folder: HudiFolder, version: Version) -> list[Action]:
    later = [one for one in folder.timeline.batches if one.requested > version.name]
    said = folder.metadata_of(later)
    return [action_of(one, metadata, compacts=False) for one, metadata in zip(later, said, strict=True)]


def _action(folder: HudiFolder, version: Version) -> Action:
    (found,) = (one for one in folder.timeline.batches if one.requested == version.name)
    return action_of(found, folder.metadata(found), compacts=False)


def _log_at(store: LogStore, instant: str, batch: int) -> _Log:
    last = newest_commit(store)
    if last is None:
        raise SettingsError("the checkpoint has no commit: it is not the one that the table was written by")
    standing = standing_at(store, instant, batch)
    return _Log(last, standing, Undone((), ()) if standing is None else undone_behind(store, standing))


def _standing(log: _Log, version: Version, batch: int, now: datetime, *, rereads: bool) -> Standing:
    """Where the stream is read from again, if it is."""
    known = log.standing
    if not rereads:
        # Where the stream stood then makes no difference.
        return known or Standing(batch, version.at, log.last.horizon, (), None)
    instead = "--leave-out takes the table back without reading anything again"
    if known is None:
        raise SettingsError(
            f"where the stream stood with {version} is not known any more: the log keeps it of the last hundred "
            f"batches, and of savepoints that this release made. {instead}"
        )
    trim = None if log.last.trim is None else trim_at(log.last.trim, now, log.last.trim.retention)
    if trim is not None and (lost := out_of_reach(known.cursors, trim)) is not None:
        since = unread_since(lost)
        raise SettingsError(
            f"{lost.shard_id} would have to be read again from {'' if since is None else show(since)} on, and the "
            f"stream retains {trim.retention}: records are gone. Go back less far; or {instead}"
        )
    return known


def _told_undone(undone: Iterable[Action]) -> str:
    commits = list(undone)
    numbers = [one.batch for one in commits if one.batch is not None]
    rows, deletes = (sum(getattr(one, name) or 0 for one in commits) for name in ("rows", "deletes"))
    batches = f" (batches {numbers[0]} to {numbers[-1]})" if len(numbers) > 1 else ""
    return (
        f"undone: {len(commits):,} commits{batches}, {rows:,} rows inserted and updated, {deletes:,} deletes, and the "
        "compactions since; the files that they wrote are deleted, and queries that read these fail"
    )


def _told_reread(standing: Standing, undone: Undone) -> Iterable[str]:
    open_shards = [cursor for cursor in standing.cursors if not isinstance(cursor, Finished)]
    since = min((time for cursor in open_shards if (time := unread_since(cursor))), default=standing.horizon)
    yield f"read again, each record once: the stream from {show(since)} on"
    if undone.rejects:
        yield f"forgotten: {len(undone.rejects):,} files of the quarantine, whose records come again"
    for request in undone.requests:
        yield f"taken again, as far as it was undone: {request}"
    for request in undone.cancelled:
        yield f"undone as far as it was taken since, and not taken again, for it was cancelled: {request}"


def _told_left_out() -> Iterable[str]:
    yield "not read again: the undone batches' records stay out of the table; the stream goes on where it is"


def _told_document(store: LogStore, definition: Definition | None, *, rereads: bool) -> Iterable[str]:
    if definition is None or not rereads:
        return
    newest = newest_definition(store)
    if newest is not None and newest.differs_in_document(definition):
        yield (
            "by the document as it is now, of which the newest batch knows nothing yet "
            f"({newest.differences(definition)}): a driver that is started with it does this, and the one that runs "
            "does not"
        )
