"""The Hive metastore as a catalog, with a real one."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DayTimeIntervalType, StructType

from engines import stock_spark
from engines.metastore import Metastore
from engines.orders import BATCHES, COLUMNS, MORE, WIDER, Written, as_read, hudi_output
from lakestream.catalogs import hive, keep_catalog
from lakestream.catalogs.hive import hive_metastore
from lakestream.catalogs.metastore import CatalogError, KeptTables
from lakestream.catalogs.tables import CatalogTable, Column, hudi_tables
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hive_paths import NULL_PARTITION
from lakestream_api import JsonOutput, TableType

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

NAMES = ("orders", "orders_ro", "orders_rt")
Kept = Callable[..., KeptTables]


@pytest.fixture
def kept(spark: SparkSession, metastore: Metastore, database: str, tmp_path: Path) -> Kept:
    """The tables of a merge-on-read table, as a driver that starts keeps them."""

    def made(
        columns: str = "id string, version bigint, dt string",
        name: str = "orders",
        table_type: TableType = TableType.MERGE_ON_READ,
    ) -> KeptTables:
        schema = spark.createDataFrame([], columns).schema
        tables = hudi_tables("orders", f"file://{tmp_path}/{name}", table_type, schema, ("dt",))
        return KeptTables(
            partial(hive_metastore, spark, metastore.uri, database), database, tables, field="catalog.hive.table"
        )

    return made


@pytest.fixture
def found(spark: SparkSession, metastore: Metastore, database: str) -> Callable[[str], tuple[CatalogTable, set[str]]]:
    """A table as the metastore has it, and the last values of its partitions."""

    def look(name: str) -> tuple[CatalogTable, set[str]]:
        with hive_metastore(spark, metastore.uri, database) as there:
            table = there.find(name)
            assert table is not None
            return table, {values[-1] for values in there.partitions(table)}

    return look


def test_tables_and_partitions_are_made_and_looked_at_once(
    metastore: Metastore, database: str, kept: Kept, found: Callable[[str], tuple[CatalogTable, set[str]]]
) -> None:
    paths = {"dt=2026-01-31", "dt=a%3Ab", f"dt={NULL_PARTITION}"}
    before = len(metastore.calls())
    kept().keep(paths)
    first = metastore.calls()[before:]
    assert [first.count(name) for name in ("get_table", "create_table", "add_partitions")] == [3, 3, 3]
    for name in NAMES:
        table, partitions = found(name)
        assert [column.name for column in table.columns] == ["id", "version"]
        assert table.partition_keys == (Column("dt", "string"),)
        assert partitions == {"2026-01-31", "a:b", NULL_PARTITION}
    before = len(metastore.calls())
    kept().keep(paths)
    second = metastore.calls()[before:]
    assert {call for call in second if "_" in call} == {"get_table", "get_partition_names"}


def test_a_metastore_that_is_dead_for_a_while_is_brought_up_to_date_when_it_is_back(
    metastore: Metastore, kept: Kept, found: Callable[[str], tuple[CatalogTable, set[str]]]
) -> None:
    tables = kept()
    tables.keep({"dt=1"})
    metastore.kill()
    try:
        tables.keep({"dt=1"})  # nothing is asked while nothing changes
        with pytest.raises(CatalogError, match=r"hive:connecting to thrift://.*Connection refused.*See that"):
            tables.keep({"dt=1", "dt=2"})
    finally:
        metastore.start()
    tables.keep({"dt=1", "dt=2"})
    assert all(found(name)[1] == {"1", "2"} for name in NAMES)


def test_a_table_that_is_dropped_under_a_driver_is_made_again_with_all_its_partitions(
    spark: SparkSession, metastore: Metastore, database: str, kept: Kept,
    found: Callable[[str], tuple[CatalogTable, set[str]]],
) -> None:  # fmt: skip
    tables = kept(table_type=TableType.COPY_ON_WRITE)
    tables.keep({"dt=1"})
    with metastore.asked(spark) as client:
        client.dropTable(database, "orders", False, True)
    with pytest.raises(CatalogError, match=r"hive:add_partitions of .*orders does not exist\.?$"):
        tables.keep({"dt=2"})
    tables.keep({"dt=2"})
    assert found("orders")[1] == {"1", "2"}


def test_a_value_that_a_database_takes_for_another_one_keeps_no_partition_out(
    kept: Kept, found: Callable[[str], tuple[CatalogTable, set[str]]]
) -> None:
    """SQL compares texts without the blanks at their ends."""
    tables = kept(table_type=TableType.COPY_ON_WRITE)
    for _ in range(2):
        with pytest.raises(CatalogError, match=r"^partition dt=paid : hive:add_partitions of .*orders: MetaException"):
            tables.keep({"dt=open", "dt=paid", "dt=paid ", "dt=sent"})
    assert found("orders")[1] == {"open", "paid", "sent"}


def test_a_metastore_that_does_not_answer_is_given_up_in_time(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hive, "_TIMEOUT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(CatalogError, match=r"hive:getTable of lake\.orders: .*Read timed out.* nor Kerberos"),
            hive_metastore(spark, uri, "lake") as there,
        ):
            there.find("orders")


def test_new_columns_come_to_tables_and_partitions_wherever_they_stand(
    kept: Kept, found: Callable[[str], tuple[CatalogTable, set[str]]], spark: SparkSession, metastore: Metastore,
    database: str,
) -> None:  # fmt: skip
    kept().keep({"dt=1"})
    with metastore.asked(spark) as client:
        theirs = client.getTable(database, "orders")
        theirs.getSd().getCols()[0].setComment("as the shop has it")
        theirs.getSd().getSerdeInfo().putToParameters("theirs", "stays")
        client.alter_table(database, "orders", theirs)
        partition = client.getPartition(database, "orders", ["1"])
        partition.getSd().getSerdeInfo().putToParameters("theirs", "stays")
        client.alter_partitions(database, "orders", [partition])
    wider = "id string, day date, version double, dt string, part struct<x:int>"
    kept(wider).keep({"dt=1"})
    expected = ["id string", "version double", "day date", "part struct<x:int>"]
    for name in NAMES:
        assert [f"{column.name} {column.type}" for column in found(name)[0].columns] == expected
        with metastore.asked(spark) as client:
            columns = client.getPartition(database, name, ["1"]).getSd().getCols()
            assert [f"{column.getName()} {column.getType()}" for column in columns] == expected
    with metastore.asked(spark) as client:
        descriptor = client.getTable(database, "orders").getSd()
        assert [column.getComment() for column in descriptor.getCols()] == ["as the shop has it", None, None, None]
        partition = client.getPartition(database, "orders", ["1"]).getSd()
        assert [one.getSerdeInfo().getParameters()["theirs"] for one in (descriptor, partition)] == ["stays", "stays"]
    more_fields = kept(wider.replace("<x:int>", "<x:int,y:string>"))
    if metastore.release == "2.3.9":
        with pytest.raises(CatalogError, match=r"incompatible .* part\. Set hive\.metastore\.disallow\.incompatible"):
            more_fields.keep({"dt=1"})
    else:
        more_fields.keep({"dt=1"})
        assert found("orders")[0].columns[-1] == Column("part", "struct<x:int,y:string>")


@pytest.mark.slow
def test_a_thousand_partitions_are_told_a_hundred_at_a_time(
    metastore: Metastore, kept: Kept, found: Callable[[str], tuple[CatalogTable, set[str]]]
) -> None:
    before = len(metastore.calls())
    kept(table_type=TableType.COPY_ON_WRITE).keep({f"dt={number}" for number in range(1000)})
    assert metastore.calls()[before:].count("add_partitions") == 10
    assert len(found("orders")[1]) == 1000


def test_what_keeps_a_table_out_is_named(
    spark: SparkSession, metastore: Metastore, database: str, kept: Kept,
    found: Callable[[str], tuple[CatalogTable, set[str]]], tmp_path: Path,
) -> None:  # fmt: skip
    kept(name="others").keep({"dt=1"})
    theirs = found("orders")
    with pytest.raises(CatalogError, match=rf"the table {database}\.orders .*/others, not of .*/orders\. Give"):
        kept().keep({"dt=2"})
    assert found("orders") == theirs
    tables = hudi_tables("orders", "file:///nowhere", TableType.COPY_ON_WRITE, StructType(), ())
    nowhere = KeptTables(partial(hive_metastore, spark, metastore.uri, "nowhere"), "nowhere", tables, field="f")
    with pytest.raises(CatalogError, match=r"hive:createTable of nowhere\.orders: .*nowhere.*Create the database"):
        nowhere.keep(set())
    columns = StructType().add("took", DayTimeIntervalType())
    tables = hudi_tables("timed", f"file://{tmp_path}/timed", TableType.COPY_ON_WRITE, columns, ())
    timed = KeptTables(partial(hive_metastore, spark, metastore.uri, database), database, tables, field="f")
    with pytest.raises(CatalogError, match=r"hive:createTable of .*\.timed: InvalidObject.* day to second(?!.*Create)"):
        timed.keep(set())
    (table,) = hudi_tables("elsewhere", "s3://lake/orders", TableType.COPY_ON_WRITE, StructType(), ())
    elsewhere = KeptTables(partial(hive_metastore, spark, metastore.uri, database), database, [table], field="f")
    with pytest.raises(CatalogError, match=r'No FileSystem for scheme "s3".*The metastore itself has to reach'):
        elsewhere.keep(set())


def test_a_metastore_that_has_s3a_keeps_what_is_on_s3(spark: SparkSession, metastore: Metastore, database: str) -> None:
    columns = spark.createDataFrame([], "id string, dt string").schema
    tables = hudi_tables("orders", "s3a://catalogs/orders", TableType.COPY_ON_WRITE, columns, ("dt",))
    opened = partial(hive_metastore, spark, metastore.uri, database)
    KeptTables(opened, database, tables, field="catalog.hive.table").keep({"dt=1", "dt=a%3Ab"})
    with opened() as there:
        found = there.find("orders")
        assert found is not None
        assert found.location == "s3a://catalogs/orders"
        assert set(there.partitions(found)) == {("1",), ("a:b",)}


def test_spark_reads_what_was_written_by_the_metastore_alone(
    spark: SparkSession, metastore: Metastore, database: str, tmp_path: Path
) -> None:
    def named(table: str) -> dict[str, Any]:
        return {"catalog": {"hive": {"uri": metastore.uri, "database": database, "table": table}}}

    tables = {
        "copied": Written(spark, hudi_output(f"file://{tmp_path}/copied", merges=False, **named("copied"))),
        "merged": Written(
            spark, hudi_output(f"file://{tmp_path}/merged", merges=True, compact_every=3, **named("merged"))
        ),
        "lines": Written(
            spark,
            JsonOutput.model_validate({"path": f"file://{tmp_path}/lines", "partitionBy": ["dt"], **named("lines")}),
        ),
    }
    for columns, batches in ((COLUMNS, BATCHES), (WIDER, MORE)):
        for table in tables.values():
            table.write(columns, *batches)
            with table.opened(columns) as sink:
                keeper = keep_catalog(table.output, sink, spark, table.s3)
                assert keeper is not None
                keeper.close()
                assert (keeper.status.error, keeper.status.completed) == ("", 1)
    assert 0 < tables["merged"].compacted() < 4
    names = ("copied", "merged", "merged_rt", "merged_ro", "lines")
    answers = stock_spark.asked(metastore.uri, tmp_path, [f"SELECT * FROM {database}.{name}" for name in names])
    for name, rows in zip(names, answers, strict=True):
        written = tables[name.partition("_")[0]]
        expected = written.rows(written.compacted() if name == "merged_ro" else None)
        assert as_read(rows) == as_read(expected), name


def test_spark_reads_intervals_of_lines_and_keys_of_their_maps(
    spark: SparkSession, metastore: Metastore, database: str, tmp_path: Path
) -> None:
    catalog = {"hive": {"uri": metastore.uri, "database": database, "table": "lines"}}
    lines = Written(spark, JsonOutput.model_validate({"path": f"file://{tmp_path}/lines", "catalog": catalog}))
    columns = "took interval day to second, since interval year to month, counts map<int,array<map<boolean,long>>>"
    values = "INTERVAL '1 02:03:04.5' DAY TO SECOND AS took, INTERVAL '-1-2' YEAR TO MONTH AS since"
    with lines.opened(columns) as sink:
        frame = spark.sql(f"SELECT {values}, map(1, array(map(true, 2L))) AS counts")
        sink.write(BatchRef(0, str(uuid.UUID(int=7))), frame, replay=False)
        keeper = keep_catalog(lines.output, sink, spark, lines.s3)
        assert keeper is not None
        keeper.close()
        assert (keeper.status.error, keeper.status.completed) == ("", 1)
    query = f"SELECT CAST(took AS string), CAST(since AS string), counts FROM {database}.lines"
    [[row]] = stock_spark.asked(metastore.uri, tmp_path, [query])
    assert row == {
        "took": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        "since": "INTERVAL '-1-2' YEAR TO MONTH",
        "counts": {"1": [{"true": 2}]},
    }


def test_tables_are_those_that_hudis_own_tool_makes(
    spark: SparkSession, metastore: Metastore, database: str, tmp_path: Path
) -> None:
    written = Written(spark, hudi_output(f"file://{tmp_path}/orders", merges=True))
    written.write(COLUMNS, *BATCHES)
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    for name, value in {
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": metastore.uri,
        "hoodie.datasource.hive_sync.database": database,
        "hoodie.datasource.hive_sync.table": "orders",
        "hoodie.datasource.hive_sync.partition_fields": "dt",
        "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
        "hoodie.datasource.hive_sync.support_timestamp": "true",
        "hoodie.datasource.meta.sync.base.path": written.output.path,
        "hoodie.meta.sync.metadata_file_listing": "false",
    }.items():
        properties.setProperty(name, value)
    tool = jvm.org.apache.hudi.hive.HiveSyncTool(properties, spark._jsc.hadoopConfiguration())
    tool.syncHoodieTable()
    tool.close()
    with written.opened(COLUMNS) as sink:
        columns, paths = sink.columns, set(sink.partitions())
    ours = hudi_tables("orders", f"file://{tmp_path}/orders", TableType.MERGE_ON_READ, columns, ("dt",))
    with hive_metastore(spark, metastore.uri, database) as there:
        for table in ours:
            theirs = there.find(table.name)
            assert theirs is not None, table.name
            assert (theirs.columns, theirs.partition_keys) == (table.columns, table.partition_keys)
            assert theirs.format == table.format
            assert _told(table).items() <= _told(theirs).items()
            assert len(there.partitions(table)) == len(paths)


def _told(table: CatalogTable) -> dict[str, Any]:
    return {
        name: json.loads(value) if name.startswith("spark.sql.sources.schema.part.") else value
        for name, value in table.properties.items()
    }
