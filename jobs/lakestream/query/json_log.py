"""JSON files as the log of their writer tells them: which batches are committed, and what their lines are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from lakestream.log import ObstoreLogStore, committed_files
from lakestream.log.layout import BATCHES, unpack
from lakestream.log.manifest import BatchFiles
from lakestream.model import BatchPlan, Definition, FileEntry
from lakestream.query.ddl import columns_of
from lakestream.query.history import History, Version
from lakestream.query.spans import Span
from lakestream.storage import StoreSettings

BATCH, COMMITTED_AT = "_batch", "_committed_at"
"""Columns of where a line came from; not in the lines."""

_METADATA = {
    "_rescued": "VARCHAR",
    "_shard_id": "VARCHAR",
    "_sequence_number": "VARCHAR",
    "_sub_sequence": "BIGINT",
    "_arrival": "TIMESTAMPTZ",
    "_partition_key": "VARCHAR",
}
# One SELECT from the events, with a star. What comes behind that has other names: two columns of one name are refused
# when a driver starts.
_KEEPS_COLUMNS = re.compile(
    r"\s*select\s+\*\s*(,((?!\bfrom\b).)*)?\sfrom\s+events(\s+where\s((?!\bselect\b).)*)?\s*", re.DOTALL | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """One file of a committed batch."""

    batch: int
    at: datetime
    """When the batch was committed, as its version has it."""
    entry: FileEntry


@dataclass(frozen=True)
class JsonLog:
    """One look at the log of a writer of JSON files."""

    table: StoreSettings
    batches: tuple[BatchFiles, ...]
    definition: Definition | None
    """Of the newest plan."""

    @classmethod
    def look(cls, table: StoreSettings, log: StoreSettings) -> JsonLog:
        """Read manifests, commits and the newest plan.

        Raises:
            CorruptLogError, StorageError, StorageUnavailableError: of the log.
        """
        store = ObstoreLogStore.at(log)
        batches = tuple(batch for batch in committed_files(store) if batch.files)
        plans = store.list(BATCHES)
        plan = unpack(plans[-1], store.get(plans[-1]), BatchPlan.from_json) if plans else None
        return cls(table, batches, None if plan is None else plan.definition)

    @cached_property
    def history(self) -> History:
        """The batches that wrote files; those that a release before the manifests has expired are not known."""
        # In the order in which they were made: the clock of a driver may be behind that of the one before it.
        times = accumulate((batch.committed_at for batch in self.batches), max)
        versions = tuple(Version(str(batch.batch), time) for batch, time in zip(self.batches, times, strict=True))
        return History(versions, kind="batch", kinds="batches")

    @property
    def told(self) -> str:
        """Name and kind, for people."""
        return f"{self.table.path.key.rpartition('/')[2]} (JSON files)"

    def files(self, span: Span) -> tuple[CommittedFile, ...]:
        """The files that a question is about."""
        if span.last is None:
            return ()
        names = None if span.commits is None else {version.name for version in span.commits}
        last = int(span.last.name)
        return tuple(file for file in self._files if file.batch <= last and (names is None or str(file.batch) in names))

    @property
    def newest_files(self) -> tuple[CommittedFile, ...]:
        """The files of the last batch that wrote any."""
        return tuple(file for file in self._files if file.batch == self.batches[-1].batch)

    @cached_property
    def _files(self) -> tuple[CommittedFile, ...]:
        return tuple(
            CommittedFile(batch.batch, version.at, entry)
            for batch, version in zip(self.batches, self.history.versions, strict=True)
            for entry in batch.files
        )

    @property
    def declared(self) -> dict[str, str]:
        """Types of DuckDB of the columns that come from the schema as they are."""
        definition = self.definition
        if definition is None or (definition.transform and not _KEEPS_COLUMNS.fullmatch(definition.transform)):
            return {}
        return {**(self._of_schema or {}), **_METADATA}

    @property
    def is_complete(self) -> bool:
        """Whether the declared columns are all that there are."""
        return self._of_schema is not None and self.definition is not None and not self.definition.transform

    @cached_property
    def _of_schema(self) -> Mapping[str, str] | None:
        """Types of the schema's columns; None if something in it is not known here, as an interval."""
        return None if self.definition is None else columns_of(self.definition.schema)
