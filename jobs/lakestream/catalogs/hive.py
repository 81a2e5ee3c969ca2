"""A Hive metastore, through the client that Spark brings along (2.3.9), in the driver's JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakestream.catalogs.metastore import CatalogError, RefusedError, Values
from lakestream.catalogs.tables import CatalogTable, Column, Format, values_of

_TIMEOUT_SECONDS = 30
"""For each answer, and for a connection. For 100 partitions the metastore looks at as many folders on S3."""


@contextmanager
def hive_metastore(spark: SparkSession, uri: str, database: str) -> Iterator[HiveMetastore]:
    """A connection to a metastore, for what is done at one time: a metastore may be started anew between two.

    Args:
        spark: its JVM has the client.
        uri: `thrift://host:port`.
        database: of the tables.

    Raises:
        CatalogError: nobody answers there.
    """
    jvm: Any = spark._jvm
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
    for name, value in {
        "hive.metastore.uris": uri,
        "hive.metastore.client.socket.timeout": f"{_TIMEOUT_SECONDS}s",
        # The keeper of the catalog tries again.
        "hive.metastore.connect.retries": "1",
        "hive.metastore.failure.retries": "0",
    }.items():
        conf.set(name, value)
    with _asking(f"connecting to {uri}"):
        client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)
    try:
        yield HiveMetastore(jvm, client, database)
    finally:
        client.close()


class HiveMetastore:
    """A database of a metastore; a `Metastore`."""

    def __init__(self, jvm: Any, client: Any, database: str) -> None:
        """With a HiveMetaStoreClient."""
        self._jvm = jvm
        self._api = jvm.org.apache.hadoop.hive.metastore.api
        self._client = client
        self._database = database

    def find(self, name: str) -> CatalogTable | None:
        with self._asking("getTable", name):
            try:
                return _table(self._client.getTable(self._database, name))
            except Py4JJavaError as error:
                if _kind(error) != "NoSuchObjectException":
                    raise
                return None

    def create(self, table: CatalogTable) -> None:
        with self._asking("createTable", table.name):
            made = self._api.Table()
            made.setDbName(self._database)
            made.setTableName(table.name)
            made.setTableType("EXTERNAL_TABLE")
            made.setOwner(self._jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName())
            made.setParameters(dict(table.properties))
            made.setPartitionKeys(self._fields(table.partition_keys))
            made.setSd(self._descriptor(table))
            self._client.getDatabase(self._database)  # that it lacks is not told from a table that it refuses
            self._client.createTable(made)

    def alter(self, table: CatalogTable) -> None:
        with self._asking("alter_table", table.name):
            found = self._client.getTable(self._database, table.name)
            comments = {column.getName(): column.getComment() for column in found.getSd().getCols()}
            self._describe(found.getSd(), table)
            found.getSd().setCols(self._fields(table.columns, comments))
            for name, value in table.properties.items():
                found.putToParameters(name, value)
            self._client.alter_table(self._database, table.name, found)

    def partitions(self, table: CatalogTable) -> Mapping[Values, str]:
        """With the name of each."""
        with self._asking("listPartitionNames", table.name):
            names = self._client.listPartitionNames(self._database, table.name, -1)
            # One text, and not a call of the JVM for each of them. A name has no line feed: those are escaped.
            joined: str = self._jvm.java.lang.String.join("\n", names)
            return {values_of(name): name for name in joined.split("\n") if name}

    def add_partitions(self, table: CatalogTable, paths: Sequence[str]) -> None:
        with self._asking("add_partitions", table.name):
            descriptor = self._descriptor(table)
            made = []
            for path in paths:
                described = descriptor.deepCopy()
                described.setLocation(table.location_of(path))
                partition = self._api.Partition()
                partition.setDbName(self._database)
                partition.setTableName(table.name)
                partition.setValues(list(values_of(path)))
                partition.setSd(described)
                made.append(partition)
            self._client.add_partitions(made, True, False)

    def alter_partitions(self, table: CatalogTable, partitions: Mapping[Values, str]) -> None:
        with self._asking("alter_partitions", table.name):
            found = self._client.getPartitionsByNames(self._database, table.name, list(partitions.values()))
            for partition in found:
                self._describe(partition.getSd(), table)
            self._client.alter_partitions(self._database, table.name, found)

    def _descriptor(self, table: CatalogTable) -> Any:
        made = self._api.StorageDescriptor()
        made.setLocation(table.location)
        made.setSerdeInfo(self._api.SerDeInfo())
        self._describe(made, table)
        return made

    def _describe(self, descriptor: Any, table: CatalogTable) -> None:
        descriptor.setCols(self._fields(table.columns))
        descriptor.setInputFormat(table.format.input)
        descriptor.setOutputFormat(table.format.output)
        serde = descriptor.getSerdeInfo()
        if serde.getSerializationLib() != table.format.serde:
            serde.setSerializationLib(table.format.serde)
            serde.setParameters({})  # those of others are for another SerDe
        for name, value in table.format.serde_properties.items():
            serde.putToParameters(name, value)

    def _fields(
        self, columns: Sequence[Column], comments: Mapping[str, str | None] = MappingProxyType({})
    ) -> list[Any]:
        return [self._api.FieldSchema(column.name, column.type, comments.get(column.name)) for column in columns]

    @contextmanager
    def _asking(self, operation: str, table: str) -> Iterator[None]:
        with _asking(f"{operation} of {self._database}.{table}"):
            yield


@contextmanager
def _asking(what: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        # A failure to connect has its stack trace in the message.
        said = " ".join(str(error.java_exception.getMessage() or "").partition("\n\tat ")[0].split())
        kind = RefusedError if _kind(error) in ("MetaException", "InvalidObjectException") else CatalogError
        raise kind(f"hive:{what}: {_kind(error)}: {said}{_advice(what, _kind(error), said)}") from error


def _kind(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getSimpleName())


def _advice(what: str, kind: str, said: str) -> str:
    if kind == "TTransportException" or "TTransportException" in said:
        return ". See that it runs, that drivers may reach it, and that it asks for neither TLS nor Kerberos."
    if "No FileSystem for scheme" in said or "ClassNotFoundException" in said:
        return ". The metastore itself has to reach the files: give it Hadoop's S3A (hadoop-aws) and rights to read."
    if "incompatible" in said:
        return ". Set hive.metastore.disallow.incompatible.col.type.changes=false at the metastore, as Hudi asks for."
    if what.startswith("createTable") and kind == "NoSuchObjectException":
        return ". Create the database; LakeStream makes tables alone."
    return ""


def _table(found: Any) -> CatalogTable:
    descriptor = found.getSd()
    serde = descriptor.getSerdeInfo()
    location = str(descriptor.getLocation() or "").rstrip("/")
    if location.startswith("file:/") and not location.startswith("file://"):
        location = location.replace("file:/", "file:///", 1)  # so Hadoop writes it
    return CatalogTable(
        name=found.getTableName(),
        location=location,
        columns=_columns(descriptor.getCols()),
        partition_keys=_columns(found.getPartitionKeys()),
        format=Format(
            descriptor.getInputFormat() or "",
            descriptor.getOutputFormat() or "",
            serde.getSerializationLib() or "",
            dict(serde.getParameters() or {}),
        ),
        properties=dict(found.getParameters() or {}),
    )


def _columns(found: Any) -> tuple[Column, ...]:
    return tuple(Column(column.getName(), column.getType()) for column in found)
