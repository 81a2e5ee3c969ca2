"""How tables are kept in a metastore, whichever it is: what to look at, what to change, and what to leave alone.

Calls: one for each table and one or more for its partitions when a driver starts; after that, one for each 100
partitions that are new. Nothing is opened or called while nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from itertools import islice
from threading import Event
from typing import Any, Protocol, TypeAlias, TypeVar

from lakestream.catalogs.tables import CatalogTable, Column, values_of
from lakestream.errors import RetryLaterError

_AT_ONCE = 100
"""Partitions in a call: as many as Glue takes."""

_MOST_REFUSALS = 16
"""In one try, for one table: two partitions are found among a hundred by as many. What is refused for another reason
costs no more."""

Values: TypeAlias = tuple[str, ...]
"""Of a partition, from the outermost column."""

_T = TypeVar("_T")


class CatalogError(RetryLaterError):
    """The catalog cannot be reached, refuses, or has another table of that name. Batches go on; it is tried again."""


class RefusedError(CatalogError):
    """It answers, and does not take what it was given; it may take a part of it."""


class Metastore(Protocol):
    """The tables of one database. All of it raises `CatalogError`, with what was asked, the answer and what to do."""

    def find(self, name: str) -> CatalogTable | None:
        """What is said of a table, its location without a slash at the end; None if there is none of that name."""
        ...

    def create(self, table: CatalogTable) -> None:
        """Describe a table that is not there."""
        ...

    def alter(self, table: CatalogTable) -> None:
        """Describe a table anew; properties and descriptions that others have given to it stay."""
        ...

    def partitions(self, table: CatalogTable) -> Mapping[Values, Any]:
        """The partitions of a table, and what this metastore knows each by."""
        ...

    def add_partitions(self, table: CatalogTable, paths: Sequence[str]) -> None:
        """Describe partitions; those that are there already are passed over.

        Raises:
            RefusedError: for one of them, maybe; the others are to be tried by themselves.
        """
        ...

    def alter_partitions(self, table: CatalogTable, partitions: Mapping[Values, Any]) -> None:
        """Describe partitions, as `partitions` gave them, anew; each keeps its location and what others have said."""
        ...


class KeptTables:
    """Tables of one database of a metastore; a `Catalog`."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Metastore]],
        database: str,
        tables: Sequence[CatalogTable],
        *,
        field: str,
    ) -> None:
        """Keep tables.

        Args:
            opened: a connection to the metastore, for as long as there is something to do.
            database: the tables' one.
            tables: all with the same partitions.
            field: of the document, by which the first of the tables is named.
        """
        self._opened = opened
        self._database = database
        self._tables = tuple(tables)
        self._field = field
        self._given_up = Event()
        self._partitions: dict[str, Values] = {}
        """All that were ever asked for, by path: a table that is made again needs each of them."""
        self._kept: dict[str, set[Values]] = {}
        self._described: dict[str, tuple[CatalogTable, set[Values]]] = {}
        """Of tables that are being brought up to date: as what, and which partitions are."""
        self._refused: dict[str, set[str]] = {table.name: set() for table in self._tables}
        """Partitions that were refused by themselves. They are tried again, behind the others."""

    def keep(self, partitions: Set[str]) -> None:
        """Give the tables their columns, and at least these partitions.

        Raises:
            CatalogError: says what was asked of the catalog, what it answered and what to do.
        """
        self._partitions |= {path: values_of(path) for path in partitions if path not in self._partitions}
        if not any(table.name not in self._kept or self._lacking(table, partitions) for table in self._tables):
            return
        failed: list[CatalogError] = []
        with self._opened() as metastore:
            for table in self._tables:
                try:
                    self._keep(metastore, table)
                except CatalogError as error:
                    # Somebody may have dropped the table; the next try looks at it as the first one did.
                    self._kept.pop(table.name, None)
                    failed.append(error)
        if failed:
            raise failed[0]

    def give_up(self) -> None:
        """Begin no further call, from any thread: another driver may keep these tables by now."""
        self._given_up.set()

    def _require_wanted(self) -> None:
        if self._given_up.is_set():
            raise CatalogError(f"the tables of {self._database} are left to the next driver, as they are")

    def _keep(self, metastore: Metastore, table: CatalogTable) -> None:
        self._require_wanted()
        if table.name not in self._kept:
            self._kept[table.name] = self._open(metastore, table)
        known = self._refused[table.name]
        refusals: list[RefusedError] = []
        refused: dict[str, RefusedError] = {}
        lacking = self._lacking(table, self._partitions.keys())
        for again in (False, True):
            for some in _batches([path for path in lacking if (path in known) is again]):
                refused.update(self._add(metastore, table, some, refusals))
        if refused:
            path, error = next(iter(refused.items()))
            beside = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
            raise CatalogError(f"partition {path}{beside}: {error}") from error

    def _add(
        self, metastore: Metastore, table: CatalogTable, paths: Sequence[str], refusals: list[RefusedError]
    ) -> Iterator[tuple[str, RefusedError]]:
        """Add partitions, in halves where all together are refused; gives those that are refused by themselves.

        Args:
            refusals: of this try so far; a new one is added.
        """
        self._require_wanted()
        known = self._refused[table.name]
        try:
            metastore.add_partitions(table, paths)
        except RefusedError as error:
            refusals.append(error)
            if len(paths) == 1:
                known.update(paths)
                yield paths[0], error
            elif len(refusals) >= _MOST_REFUSALS:
                raise
            else:
                for half in (paths[: len(paths) // 2], paths[len(paths) // 2 :]):
                    yield from self._add(metastore, table, half, refusals)
        else:
            known.difference_update(paths)
            self._kept[table.name].update(self._partitions[path] for path in paths)

    def _lacking(self, table: CatalogTable, partitions: Set[str]) -> list[str]:
        if not table.partition_keys:
            return []
        kept = self._kept[table.name]
        return sorted(path for path in partitions if self._partitions[path] not in kept)

    def _open(self, metastore: Metastore, table: CatalogTable) -> set[Values]:
        """Make the table, or bring it up to date; returns the values of its partitions."""
        found = metastore.find(table.name)
        if found is None:
            metastore.create(table)
            return set()
        self._require_same(found, table)
        self._require_wanted()
        wanted = table.in_order_of(found)
        partitions = metastore.partitions(wanted) if wanted.partition_keys else {}
        if not wanted.is_told_by(found):
            # Partitions first: if it ends between the two, the table still tells that there is something to do.
            described = self._described_as(wanted)
            for some in _batches(sorted(partitions.keys() - described)):
                self._require_wanted()
                metastore.alter_partitions(wanted, {values: partitions[values] for values in some})
                described.update(some)
            self._require_wanted()
            metastore.alter(wanted)
            del self._described[table.name]
        return set(partitions)

    def _described_as(self, wanted: CatalogTable) -> set[Values]:
        """The partitions that earlier tries have described so: of a thousand calls one may always fail."""
        before, described = self._described.get(wanted.name, (None, set[Values]()))
        if before != wanted:
            described = set()
        self._described[wanted.name] = (wanted, described)
        return described

    def _require_same(self, found: CatalogTable, table: CatalogTable) -> None:
        name = f"{self._database}.{table.name}"
        if found.location != table.location:
            raise CatalogError(
                f"the table {name} of the catalog is that of {found.location or 'no files'}, not of {table.location}. "
                f"Give {self._field} another name, or drop that table from the catalog."
            )
        if found.partition_keys != table.partition_keys:
            raise CatalogError(
                f"the table {name} of the catalog is partitioned by {_told(found.partition_keys)}, and the files by "
                f"{_told(table.partition_keys)}. Drop it from the catalog; it is made again, and no data is lost."
            )


def _batches(some: Collection[_T]) -> Iterator[list[_T]]:
    rest = iter(some)
    while batch := list(islice(rest, _AT_ONCE)):
        yield batch


def _told(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns) or "nothing"
