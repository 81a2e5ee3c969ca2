"""A driver that keeps its table in a catalog, and is killed before the catalog is told."""

from __future__ import annotations

import boto3
import pytest
from pyspark.sql import SparkSession

from lab.chain import Labs, Table, let_happen, take_more
from lab.links import AtStep
from lab.verdict import require_exactly_once
from lakestream.sinks.objects import folders_of
from lakestream.storage import LakePath, S3Settings, StoreSettings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DATABASE = "exactly_once"


def test_partitions_that_a_killed_driver_did_not_tell_are_told_by_the_next(
    labs: Labs, s3: str, spark_on_s3: SparkSession
) -> None:
    glue = boto3.client(
        "glue", endpoint_url=s3, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    glue.create_database(DatabaseInput={"Name": DATABASE})
    lab = labs.make(Table.MOR_9, "s3")
    with lab.explained():
        let_happen(lab, [AtStep("sink_committed", 1)])
        # From here on there is a catalog; the first partitions are those of batches that are over.
        lab.document["spec"]["writers"][0]["hudi"]["catalog"] = {"glue": {"database": DATABASE, "table": "orders"}}
        take_more(lab)
        lab.catch_up(spark_on_s3)
    with lab.writer.environment():
        place = StoreSettings(LakePath.parse(lab.writer.path), S3Settings("us-east-1", s3))
        partitions = set(folders_of(place, ["dt"]))
    assert partitions
    tables = glue.get_tables(DatabaseName=DATABASE)["TableList"]
    assert {table["Name"] for table in tables} == {"orders", "orders_ro", "orders_rt"}
    for table in tables:
        location = lab.writer.path.replace("s3a://", "s3://")
        assert table["StorageDescriptor"]["Location"] == location
        columns = [column["Name"] for column in table["StorageDescriptor"]["Columns"]]
        assert columns[0] == "_hoodie_commit_time"
        assert {"order_id", "version", "created_at", "_hoodie_is_deleted"} <= set(columns)
        found = glue.get_partitions(DatabaseName=DATABASE, TableName=table["Name"])["Partitions"]
        assert {one["StorageDescriptor"]["Location"] for one in found} == {f"{location}/{path}" for path in partitions}
    require_exactly_once(lab, spark_on_s3)
