"""The AWS Glue Data Catalog, through botocore.

Calls: one for each table, and one for each 1,000 partitions that it has, when a driver starts; after that, one for each
100 partitions that are new. Nothing is called while nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeAlias

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakestream.catalogs.tables import CatalogTable, Column, values_of
from lakestream.errors import RetryLaterError

_AT_ONCE = 100
"""Partitions that Glue takes in a call."""

_CONFIG = Config(connect_timeout=10, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 4})

_OURS_TO_SET = ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
_OTHERS = ("Description", "Owner", "Retention", "TargetTable")
"""What an update of a table would take away, were it not sent along."""


Values: TypeAlias = tuple[str, ...]
"""Of a partition, from the outermost column."""


class CatalogError(RetryLaterError):
    """The catalog cannot be reached, refuses, or has another table of that name. Batches go on; it is tried again."""


def glue_client(region: str) -> Any:
    """For the catalog of a Region, in the account of the process's credentials."""
    return botocore.session.get_session().create_client("glue", region, config=_CONFIG)


class GlueCatalog:
    """Tables of one database; a `Catalog`."""

    def __init__(self, client: Any, database: str, tables: Sequence[CatalogTable]) -> None:
        """With a client as of `glue_client`, a database, and tables that all have the same partitions."""
        self._client = client
        self._database = database
        self._tables = tuple(tables)
        self._kept: dict[str, set[Values]] = {}

    def keep(self, partitions: Set[str]) -> None:
        """Give the tables their columns, and at least these partitions.

        Raises:
            CatalogError: says what was asked of Glue, what it answered and what to do.
        """
        for table in self._tables:
            if table.name not in self._kept:
                self._kept[table.name] = self._open(table)
            if table.partition_keys:
                self._add(table, partitions)

    def _open(self, table: CatalogTable) -> set[Values]:
        """Make the table, or bring it up to date; returns the values of its partitions."""
        found = self._find(table)
        if found is None:
            with self._asking("CreateTable", table):
                self._client.create_table(DatabaseName=self._database, TableInput=_table_input(table))
            return set()
        _require_same(found, table, self._database)
        partitions = self._locations(table) if table.partition_keys else {}
        wanted = {**_kept_fields(found), **_table_input(table, found.get("Parameters", {}))}
        if any(found.get(field) != wanted[field] for field in _OURS_TO_SET if field != "StorageDescriptor") or (
            _described(found["StorageDescriptor"]) != _described(wanted["StorageDescriptor"])
        ):
            # Partitions first: if it ends between the two, the table still tells that there is something to do.
            self._update(table, partitions)
            with self._asking("UpdateTable", table):
                self._client.update_table(DatabaseName=self._database, TableInput=wanted)
        return set(partitions)

    def _find(self, table: CatalogTable) -> Mapping[str, Any] | None:
        with self._asking("GetTable", table):
            try:
                answer = self._client.get_table(DatabaseName=self._database, Name=table.name)
            except ClientError as error:
                if _code(error) != "EntityNotFoundException" or "database" in str(error).lower():
                    raise
                return None
        found: Mapping[str, Any] = answer["Table"]
        return found

    def _locations(self, table: CatalogTable) -> dict[Values, str]:
        with self._asking("GetPartitions", table):
            pages = self._client.get_paginator("get_partitions").paginate(
                DatabaseName=self._database, TableName=table.name, ExcludeColumnSchema=True
            )
            return {
                tuple(found["Values"]): found["StorageDescriptor"]["Location"]
                for page in pages
                for found in page["Partitions"]
            }

    def _add(self, table: CatalogTable, partitions: Set[str]) -> None:
        kept = self._kept[table.name]
        new = iter(sorted(path for path in partitions if values_of(path) not in kept))
        while some := list(islice(new, _AT_ONCE)):
            with self._asking("BatchCreatePartition", table):
                answer = self._client.batch_create_partition(
                    DatabaseName=self._database,
                    TableName=table.name,
                    PartitionInputList=[
                        _partition_input(table, values_of(path), table.location_of(path)) for path in some
                    ],
                )
            _require_none(answer, "BatchCreatePartition", self._name(table))
            kept.update(map(values_of, some))

    def _update(self, table: CatalogTable, partitions: Mapping[Values, str]) -> None:
        known = iter(sorted(partitions.items()))
        while some := list(islice(known, _AT_ONCE)):
            with self._asking("BatchUpdatePartition", table):
                answer = self._client.batch_update_partition(
                    DatabaseName=self._database,
                    TableName=table.name,
                    Entries=[
                        {
                            "PartitionValueList": list(values),
                            "PartitionInput": _partition_input(table, values, location),
                        }
                        for values, location in some
                    ],
                )
            _require_none(answer, "BatchUpdatePartition", self._name(table))

    def _name(self, table: CatalogTable) -> str:
        return f"{self._database}.{table.name}"

    @contextmanager
    def _asking(self, operation: str, table: CatalogTable) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise CatalogError(f"glue:{operation} of {self._name(table)}: {error}{_advice(error)}") from error


def _advice(error: Exception) -> str:
    match _code(error):
        case "AccessDeniedException":
            return " Give the driver's role charts/lakestream/iam/glue.json."
        case "EntityNotFoundException":
            return " Create the database; LakeStream makes tables alone."
    return ""


def _code(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _require_same(found: Mapping[str, Any], table: CatalogTable, database: str) -> None:
    location = str(found.get("StorageDescriptor", {}).get("Location", "")).rstrip("/")
    if location != table.location:
        raise CatalogError(
            f"the table {database}.{table.name} of the Glue catalog is that of {location or 'no files'}, not of "
            f"{table.location}. Give catalog.glue.table another name, or drop that table from the catalog."
        )
    keys = _columns(found.get("PartitionKeys", []))
    if keys != table.partition_keys:
        raise CatalogError(
            f"the table {database}.{table.name} of the Glue catalog is partitioned by {_told(keys)}, and the files by "
            f"{_told(table.partition_keys)}. Drop it from the catalog; it is made again, and no data is lost."
        )


def _told(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns) or "nothing"


def _columns(found: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(Column(column["Name"], column["Type"]) for column in found)


def _described(descriptor: Mapping[str, Any]) -> tuple[object, ...]:
    serde = descriptor.get("SerdeInfo", {})
    return (
        _columns(descriptor.get("Columns", [])),
        descriptor.get("InputFormat"),
        descriptor.get("OutputFormat"),
        serde.get("SerializationLibrary"),
        serde.get("Parameters"),
    )


def _kept_fields(found: Mapping[str, Any]) -> dict[str, Any]:
    return {field: found[field] for field in _OTHERS if field in found}


def _table_input(table: CatalogTable, theirs: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        # Others keep properties of a table as well.
        "Parameters": {**(theirs or {}), **table.properties},
        "PartitionKeys": _as_input(table.partition_keys),
        "StorageDescriptor": _descriptor(table, table.location),
    }


def _partition_input(table: CatalogTable, values: Values, location: str) -> dict[str, Any]:
    return {"Values": list(values), "StorageDescriptor": _descriptor(table, location)}


def _descriptor(table: CatalogTable, location: str) -> dict[str, Any]:
    return {
        "Columns": _as_input(table.columns),
        "Location": location,
        "InputFormat": table.format.input,
        "OutputFormat": table.format.output,
        "SerdeInfo": {
            "SerializationLibrary": table.format.serde,
            "Parameters": dict(table.format.serde_properties),
        },
    }


def _as_input(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"Name": column.name, "Type": column.type} for column in columns]


def _require_none(answer: Mapping[str, Any], operation: str, table: str) -> None:
    """That no partition was refused. One that is there already was made by a driver that died before it was told."""
    for refused in answer.get("Errors", []):
        error = refused.get("ErrorDetail", {})
        if error.get("ErrorCode") != "AlreadyExistsException":
            values = refused.get("PartitionValues") or refused.get("PartitionValueList")
            said = f"{error.get('ErrorCode')}: {error.get('ErrorMessage')}"
            raise CatalogError(f"glue:{operation} of {table}: partition {values}: {said}")
