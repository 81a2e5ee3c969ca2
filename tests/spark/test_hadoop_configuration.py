"""What Hudi hands to each of its tasks."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from hudi_orders import Order, opened, ref, rows_of, upserts
from lakestream_api import TableType


def test_defaults_that_nobody_asks_for_stay_out_of_hadoops_configuration(spark: SparkSession, tmp_path: Path) -> None:
    with opened(spark, upserts(tmp_path, TableType.MERGE_ON_READ)) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        sink.finish_services()
    spark.read.format("hudi").load(f"file://{tmp_path}/orders").count()
    conf = spark._jsc.hadoopConfiguration()
    assert conf.get("yarn.resourcemanager.address") is None
    assert conf.get("mapreduce.job.reduces") is None
    assert conf.get("fs.s3a.impl") == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert conf.get("mapreduce.outputcommitter.factory.scheme.s3a") is not None
