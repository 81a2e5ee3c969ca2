"""Looking at a table: the requests that a report takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import obstore

from lakestream.log import BatchFiles, ObstoreLogStore, committed_files, newest_service, without_readmitted
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.target import Kind, Target
from lakestream.query.timeline import State
from lakestream.storage import StoreSettings, open_store, translated
from lakestream.table.files import SMALL, StoredFile, slices_of
from lakestream.table.report import (
    Action,
    Asked,
    HudiReport,
    JsonReport,
    Quarantine,
    action_of,
    hudi_report,
    json_report,
)


def look(target: Target, limit: int, merged_below: int = SMALL) -> HudiReport | JsonReport:
    """Report on a table.

    Args:
        target: the table.
        limit: entries of the timeline to tell, the newest, one request each; what is pending is told in any case.
        merged_below: as of `slices_of`.

    Raises:
        SettingsError, UnreadableError: as `HudiFolder.look`.
        CorruptLogError, StorageError, StorageUnavailableError: of the log and the store.
    """
    if target.kind is Kind.JSON:
        return json_report(str(target.table.path), batches_of(target.required_log()))
    log = target.known_log()
    batches = () if log is None else batches_of(log)
    folder = HudiFolder.look(target.table)
    rejects = None if log is None else Quarantine.of(batches)
    asked = None if log is None else _asked(log)
    slices = slices_of(_stored(target.table), folder.timeline, folder.replaced_groups, merged_below)
    return hudi_report(folder, slices, _actions(folder, limit), rejects, asked)


def _asked(log: StoreSettings) -> Asked | None:
    newest = newest_service(ObstoreLogStore.at(log))
    return None if newest is None else Asked.of(*newest)


def batches_of(log: StoreSettings) -> tuple[BatchFiles, ...]:
    """The committed batches of a writer that wrote objects, with what is in quarantine of them."""
    return without_readmitted(committed_files(ObstoreLogStore.at(log)))


def _actions(folder: HudiFolder, limit: int) -> list[Action]:
    timeline = folder.timeline
    compactions = {one.requested for one in timeline.compactions}
    first = max(0, len(timeline.instants) - limit)
    told = [*(one for one in timeline.instants[:first] if one.state is not State.COMPLETED), *timeline.instants[first:]]
    completed = [instant for instant in told if instant.state is State.COMPLETED]
    said = dict(zip(completed, folder.metadata_of(completed), strict=True))
    return [action_of(one, said.get(one, {}), compacts=one.requested in compactions) for one in told]


def _stored(place: StoreSettings) -> Iterator[StoredFile]:
    with translated(f"list {place.path}"):
        for meta in chain.from_iterable(obstore.list(open_store(place))):
            yield StoredFile(meta["path"], meta["size"])
