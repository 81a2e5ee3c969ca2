"""The AWS Glue Data Catalog, through botocore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from lakestream.catalogs.metastore import CatalogError, RefusedError, Values
from lakestream.catalogs.tables import CatalogTable, Column, Format, values_of

_CONFIG = Config(connect_timeout=10, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 4})

_OTHERS = ("Description", "Owner", "Retention", "TargetTable")
"""What an update of a table would take away, were it not sent along."""

_OF_PARTITIONS = ("Parameters", "LastAccessTime", "LastAnalyzedTime", "StorageDescriptor")
"""The same of a partition."""


def glue_client(region: str) -> Any:
    """For the catalog of a Region, in the account of the process's credentials."""
    return botocore.session.get_session().create_client("glue", region, config=_CONFIG)


class GlueCatalog:
    """A database of the catalog; a `Metastore`."""

    def __init__(self, client: Any, database: str) -> None:
        """With a client as of `glue_client`."""
        self._client = client
        self._database = database

    def find(self, name: str) -> CatalogTable | None:
        with self._asking("GetTable", name):
            try:
                return _table(self._get(name))
            except ClientError as error:
                # It, or its database: what is said of the two differs by nothing that can be relied on.
                if _code(error) != "EntityNotFoundException":
                    raise
                return None

    def create(self, table: CatalogTable) -> None:
        with self._asking("CreateTable", table.name):
            self._client.create_table(DatabaseName=self._database, TableInput=_table_input(table))

    def alter(self, table: CatalogTable) -> None:
        with self._asking("UpdateTable", table.name):
            found = self._get(table.name)
            theirs = {field: found[field] for field in _OTHERS if field in found}
            self._client.update_table(
                DatabaseName=self._database, TableInput={**theirs, **_updated(found, _table_input(table))}
            )

    def partitions(self, table: CatalogTable) -> Mapping[Values, Mapping[str, Any]]:
        """With what is said of each."""
        with self._asking("GetPartitions", table.name):
            pages = self._client.get_paginator("get_partitions").paginate(
                DatabaseName=self._database, TableName=table.name, ExcludeColumnSchema=True
            )
            return {
                tuple(found["Values"]): {field: found[field] for field in _OF_PARTITIONS if field in found}
                for page in pages
                for found in page["Partitions"]
            }

    def add_partitions(self, table: CatalogTable, paths: Sequence[str]) -> None:
        with self._asking("BatchCreatePartition", table.name):
            answer = self._client.batch_create_partition(
                DatabaseName=self._database,
                TableName=table.name,
                PartitionInputList=[
                    {"Values": list(values_of(path)), "StorageDescriptor": _descriptor(table, table.location_of(path))}
                    for path in paths
                ],
            )
        _require_none(answer, "BatchCreatePartition", self._name(table.name))

    def alter_partitions(self, table: CatalogTable, partitions: Mapping[Values, Mapping[str, Any]]) -> None:
        with self._asking("BatchUpdatePartition", table.name):
            answer = self._client.batch_update_partition(
                DatabaseName=self._database,
                TableName=table.name,
                Entries=[
                    {"PartitionValueList": list(values), "PartitionInput": _updated_partition(found, table, values)}
                    for values, found in partitions.items()
                ],
            )
        _require_none(answer, "BatchUpdatePartition", self._name(table.name))

    def _get(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._client.get_table(DatabaseName=self._database, Name=name)["Table"]
        return found

    def _name(self, table: str) -> str:
        return f"{self._database}.{table}"

    @contextmanager
    def _asking(self, operation: str, table: str) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            said = f"{' '.join(str(error).split())}{_advice(operation, error)}"
            kind = RefusedError if _refuses(error) else CatalogError
            raise kind(f"glue:{operation} of {self._name(table)}: {said}") from error


def _advice(operation: str, error: Exception) -> str:
    match _code(error):
        case "AccessDeniedException":
            return " Give the driver's role charts/lakestream/iam/glue.json."
        case "EntityNotFoundException" if operation == "CreateTable":
            return " Create the database; LakeStream makes tables alone."
    return ""


def _refuses(error: Exception) -> bool:
    """What it was given, whoever gives it."""
    return isinstance(error, ParamValidationError) or _code(error) in ("ValidationException", "InvalidInputException")


def _code(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _table(found: Mapping[str, Any]) -> CatalogTable:
    descriptor = found.get("StorageDescriptor", {})
    serde = descriptor.get("SerdeInfo", {})
    return CatalogTable(
        name=found["Name"],
        location=descriptor.get("Location", "").rstrip("/"),
        columns=_columns(descriptor.get("Columns", [])),
        partition_keys=_columns(found.get("PartitionKeys", [])),
        format=Format(
            descriptor.get("InputFormat", ""),
            descriptor.get("OutputFormat", ""),
            serde.get("SerializationLibrary", ""),
            serde.get("Parameters", {}),
        ),
        properties=found.get("Parameters", {}),
    )


def _columns(found: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(Column(column["Name"], column["Type"]) for column in found)


def _table_input(table: CatalogTable) -> dict[str, Any]:
    return {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": dict(table.properties),
        "PartitionKeys": _as_input(table.partition_keys),
        "StorageDescriptor": _descriptor(table, table.location),
    }


def _updated(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What is wanted of a table, with what others have said of it beside that: comments of columns, for instance."""
    there = found.get("StorageDescriptor", {})
    columns = {column["Name"]: column for column in there.get("Columns", [])}
    ours = _beside(there, wanted["StorageDescriptor"])
    return {
        **wanted,
        "Parameters": {**found.get("Parameters", {}), **wanted["Parameters"]},
        "PartitionKeys": found.get("PartitionKeys", []),
        "StorageDescriptor": {
            **ours,
            "Columns": [{**columns.get(column["Name"], {}), **column} for column in ours["Columns"]],
        },
    }


def _updated_partition(found: Mapping[str, Any], table: CatalogTable, values: Values) -> dict[str, Any]:
    """The same of a partition, which stays where it is; one that somebody has made may be nowhere."""
    there = found.get("StorageDescriptor", {})
    ours = _descriptor(table, there.get("Location", ""))
    if "Location" not in there:
        del ours["Location"]
    return {**found, "Values": list(values), "StorageDescriptor": _beside(there, ours)}


def _beside(there: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """A descriptor, with the parameters that others have given to it and to its SerDe."""
    serde, our_serde = there.get("SerdeInfo", {}), ours["SerdeInfo"]
    if serde.get("SerializationLibrary") == our_serde["SerializationLibrary"]:
        our_serde = {**serde, **our_serde, "Parameters": {**serde.get("Parameters", {}), **our_serde["Parameters"]}}
    theirs = {"Parameters": there["Parameters"]} if "Parameters" in there else {}
    return {**theirs, **ours, "SerdeInfo": our_serde}


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
            raise RefusedError(f"glue:{operation} of {table}: partition {values}: {said}")
