"""The Glue Data Catalog, as moto has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from lakestream.catalogs.glue import GlueCatalog, glue_client
from lakestream.catalogs.metastore import CatalogError, KeptTables
from lakestream.catalogs.tables import CatalogTable, JsonSerde, hudi_tables, json_table
from lakestream.sinks.hive_paths import NULL_PARTITION
from lakestream_api import TableType

COLUMNS = StructType().add("order_id", StringType()).add("version", LongType()).add("dt", StringType())
WIDER = StructType([*COLUMNS.fields]).add("note", StringType())


DATABASES = count(1)


def kept_in(client: Any, database: str, tables: Sequence[CatalogTable]) -> KeptTables:
    glue = GlueCatalog(client, database)
    return KeptTables(lambda: nullcontext(glue), database, tables, field="catalog.glue.table")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from moto import mock_aws  # slow to import

    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        yield glue_client("eu-west-1")


class Glue:
    """A database, and the calls that drivers make."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.database = f"lake{next(DATABASES)}"
        self.calls: list[str] = []
        client.create_database(DatabaseInput={"Name": self.database})
        client.meta.events.register("before-call", self._note, unique_id=self.database)

    def _note(self, model: Any, **_: object) -> None:
        self.calls.append(model.name)

    def end(self) -> None:
        self.client.meta.events.unregister("before-call", unique_id=self.database)

    def driver(self, *tables: CatalogTable) -> KeptTables:
        """A catalog as a driver that starts has it."""
        self.calls.clear()
        return kept_in(self.client, self.database, tables or merged())

    def table(self, name: str = "orders") -> Any:
        return self.client.get_table(DatabaseName=self.database, Name=name)["Table"]

    def partitions(self, table: str = "orders") -> dict[tuple[str, ...], Any]:
        pages = self.client.get_paginator("get_partitions").paginate(DatabaseName=self.database, TableName=table)
        return {tuple(one["Values"]): one["StorageDescriptor"] for page in pages for one in page["Partitions"]}


@pytest.fixture
def glue(client: Any) -> Iterator[Glue]:
    made = Glue(client)
    yield made
    made.end()


def merged(columns: StructType = COLUMNS) -> tuple[CatalogTable, ...]:
    return hudi_tables("orders", "s3://bucket/orders", TableType.MERGE_ON_READ, columns, ("dt",))


def columns(descriptor: Any) -> list[str]:
    return [column["Name"] for column in descriptor["Columns"]]


def test_tables_and_partitions_are_made(glue: Glue) -> None:
    glue.driver().keep({"dt=2026-01-31", "dt=a%3Ab", f"dt={NULL_PARTITION}"})
    for name in ("orders", "orders_ro", "orders_rt"):
        table = glue.table(name)
        assert table["TableType"] == "EXTERNAL_TABLE"
        assert columns(table["StorageDescriptor"]) == ["order_id", "version"]
        assert table["PartitionKeys"] == [{"Name": "dt", "Type": "string"}]
        assert {values: one["Location"] for values, one in glue.partitions(name).items()} == {
            ("2026-01-31",): "s3://bucket/orders/dt=2026-01-31",
            ("a:b",): "s3://bucket/orders/dt=a%3Ab",
            (NULL_PARTITION,): f"s3://bucket/orders/dt={NULL_PARTITION}",
        }


def test_nothing_is_called_while_nothing_changes(glue: Glue) -> None:
    kept = glue.driver(*merged()[:1])
    kept.keep({"dt=1"})
    assert glue.calls == ["GetTable", "CreateTable", "BatchCreatePartition"]
    for _ in range(3):
        kept.keep({"dt=1"})
    assert len(glue.calls) == 3
    kept.keep({"dt=1", "dt=2"})
    assert glue.calls[3:] == ["BatchCreatePartition"]
    # The next driver looks once.
    kept = glue.driver(*merged()[:1])
    for _ in range(2):
        kept.keep({"dt=1", "dt=2"})
    assert glue.calls == ["GetTable", "GetPartitions"]
    assert set(glue.partitions()) == {("1",), ("2",)}


def test_many_partitions_are_told_a_hundred_at_a_time(glue: Glue) -> None:
    paths = {f"dt={number}" for number in range(250)}
    glue.driver(*merged()[:1]).keep(paths)
    assert glue.calls.count("BatchCreatePartition") == 3
    assert len(glue.partitions()) == 250
    glue.driver(*merged(WIDER)[:1]).keep(paths)
    assert glue.calls.count("BatchUpdatePartition") == 3


def test_new_columns_come_to_tables_and_to_partitions_that_are_there(glue: Glue) -> None:
    glue.driver().keep({"dt=1"})
    mine = glue.table()
    theirs = {"Description": "all orders", "Parameters": {**mine["Parameters"], "owner": "finance"}}
    fields = ("Name", "TableType", "StorageDescriptor", "PartitionKeys")
    changed = {**{field: mine[field] for field in fields}, **theirs}
    changed["StorageDescriptor"]["Columns"][0]["Comment"] = "as the shop has it"
    changed["StorageDescriptor"]["SerdeInfo"]["Parameters"]["ignore.malformed"] = "true"
    changed["PartitionKeys"][0]["Comment"] = "day"
    glue.client.update_table(DatabaseName=glue.database, TableInput=changed)
    glue.driver().keep({"dt=1"})
    assert "UpdateTable" not in glue.calls, "what others say of a table is theirs"
    glue.driver(*merged(WIDER)).keep({"dt=1"})
    for name in ("orders", "orders_ro", "orders_rt"):
        assert columns(glue.table(name)["StorageDescriptor"]) == ["order_id", "version", "note"]
        (partition,) = glue.partitions(name).values()
        assert columns(partition) == ["order_id", "version", "note"]
        assert partition["Location"] == "s3://bucket/orders/dt=1"
    table = glue.table()
    assert (table["Description"], table["Parameters"]["owner"]) == ("all orders", "finance")
    assert [column.get("Comment") for column in table["StorageDescriptor"]["Columns"]] == [
        *("as the shop has it", None, None)
    ]
    assert table["StorageDescriptor"]["SerdeInfo"]["Parameters"]["ignore.malformed"] == "true"
    assert table["PartitionKeys"][0]["Comment"] == "day"
    glue.driver(*merged(WIDER)).keep({"dt=1"})
    assert set(glue.calls) == {"GetTable", "GetPartitions"}


def test_what_others_say_of_a_partition_stays(glue: Glue) -> None:
    glue.driver(*merged()[:1]).keep({"dt=1"})
    theirs = glue.partitions()["1",]
    theirs["Parameters"] = {"crawler": "theirs"}
    theirs["SerdeInfo"]["Parameters"]["ignore.malformed"] = "true"
    names = {"DatabaseName": glue.database, "TableName": "orders"}
    said = {"Values": ["1"], "Parameters": {"owner": "finance"}, "StorageDescriptor": theirs}
    glue.client.update_partition(**names, PartitionValueList=["1"], PartitionInput=said)
    glue.client.create_partition(**names, PartitionInput={"Values": ["nowhere"]})
    glue.driver(*merged(WIDER)[:1]).keep({"dt=1", "dt=2"})
    found = glue.client.get_partition(**names, PartitionValues=["1"])["Partition"]
    assert found["Parameters"] == {"owner": "finance"}
    descriptor = found["StorageDescriptor"]
    assert columns(descriptor) == ["order_id", "version", "note"]
    assert descriptor["Location"] == "s3://bucket/orders/dt=1"
    assert descriptor["Parameters"] == {"crawler": "theirs"}
    assert descriptor["SerdeInfo"]["Parameters"]["ignore.malformed"] == "true"
    assert set(glue.partitions()) == {("1",), ("2",), ("nowhere",)}


def test_a_partition_that_a_driver_made_before_it_died_is_no_error(glue: Glue) -> None:
    one, other = glue.driver(*merged()[:1]), glue.driver(*merged()[:1])
    one.keep(set())
    other.keep(set())
    one.keep({"dt=1"})
    other.keep({"dt=1", "dt=2"})
    assert set(glue.partitions()) == {("1",), ("2",)}


def test_a_table_that_is_dropped_under_a_driver_is_made_again_with_all_its_partitions(glue: Glue) -> None:
    kept = glue.driver(*merged()[:1])
    kept.keep({"dt=1"})
    kept.keep({"dt=2"})
    glue.client.delete_table(DatabaseName=glue.database, Name="orders")
    with pytest.raises(CatalogError, match=r"glue:BatchCreatePartition of .*orders not found\.$"):
        kept.keep({"dt=3"})
    kept.keep({"dt=3"})
    assert set(glue.partitions()) == {("1",), ("2",), ("3",)}


def test_a_folder_without_a_value_keeps_no_partition_out(glue: Glue) -> None:
    with pytest.raises(CatalogError, match=r"^partition dt=: glue:BatchCreatePartition of .*valid min length: 1"):
        glue.driver(*merged()[:1]).keep({"dt=", "dt=1", "dt=2"})
    assert set(glue.partitions()) == {("1",), ("2",)}


def test_a_table_without_partitions_has_none(glue: Glue) -> None:
    table = json_table("orders", "s3://bucket/events", COLUMNS, (), JsonSerde.OPENX)
    glue.driver(table).keep(set())
    assert glue.calls == ["GetTable", "CreateTable"]
    glue.driver(table).keep(set())
    assert glue.calls == ["GetTable"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"location": "s3://bucket/others"}, r"orders of .* is that of s3://bucket/orders, not of s3://bucket/others"),
        ({"partition_keys": ()}, r"is partitioned by dt string, and the files by nothing\. Drop it"),
    ],
)
def test_another_table_of_that_name_is_left_alone(glue: Glue, changes: dict[str, Any], message: str) -> None:
    (table, *_) = merged()
    glue.driver(table).keep({"dt=1"})
    before = glue.table()
    with pytest.raises(CatalogError, match=message):
        glue.driver(replace(table, **changes)).keep({"dt=1"})
    assert glue.table() == before


def test_a_database_that_is_missing_is_named(client: Any) -> None:
    with pytest.raises(CatalogError, match=r"of nowhere.orders: .*Create the database"):
        kept_in(client, "nowhere", merged()).keep(set())


def test_a_table_may_be_named_for_a_database(glue: Glue) -> None:
    (table,) = hudi_tables("database_changes", "s3://bucket/changes", TableType.COPY_ON_WRITE, COLUMNS, ("dt",))
    glue.driver(table).keep({"dt=1"})
    assert set(glue.partitions("database_changes")) == {("1",)}


def test_a_catalog_that_refuses_is_told_and_taken_up_again(glue: Glue) -> None:
    kept = glue.driver(*merged()[:1])
    answers = [{"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}]

    def refuse(**_: object) -> object:
        return (SimpleNamespace(status_code=400, headers={}), answers.pop()) if answers else None

    glue.client.meta.events.register_first("before-call.glue.BatchCreatePartition", refuse, unique_id="refuse")
    try:
        with pytest.raises(CatalogError, match=r"glue:BatchCreatePartition of lake.*orders: .*iam/glue.json"):
            kept.keep({"dt=1"})
    finally:
        glue.client.meta.events.unregister("before-call.glue.BatchCreatePartition", unique_id="refuse")
    kept.keep({"dt=1"})
    assert set(glue.partitions()) == {("1",)}
