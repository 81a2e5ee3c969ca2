"""What a driver does, in small, so that its JVM loads the classes that a driver's JVM loads.

Run as `python -m lakestream.spark.rehearsal FOLDER CLASS_PATH CLASS_LIST`: the names of the classes go to CLASS_LIST.
It asks for what Spark and Hudi do, in their own words, and knows nothing of the sinks: so an image can make the archive
in a layer that does not change with our code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakestream.spark.arrow import map_in_arrow
from lakestream.spark.hudi import HUDI_CONF

if TYPE_CHECKING:
    import pyarrow as pa

_DDL = "id string, version long, op string, amount double, at timestamp"
_COMMITS = 3
_HUDI = {
    "hoodie.table.name": "rehearsal",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "version",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
_S3A = {
    "fs.s3a.endpoint": "http://127.0.0.1:1",
    "fs.s3a.endpoint.region": "us-east-1",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.attempts.maximum": "0",
    "fs.s3a.retry.limit": "0",
    "fs.s3a.access.key": "none",
    "fs.s3a.secret.key": "none",
}
"""Of a server that does not answer."""


def rehearse(spark: SparkSession, folder: Path) -> None:
    """Read from Python, parse, cache; write Hudi tables of both types, compact and clean them; write files."""
    events = _events(spark).persist(StorageLevel.MEMORY_AND_DISK_DESER)
    events.groupBy("op").agg(sf.count("*"), sf.percentile_approx("version", [0.5], 100)).collect()
    for table_type, compacts in (("MERGE_ON_READ", "true"), ("COPY_ON_WRITE", "false")):
        path = str(folder / table_type)
        options = {**_HUDI, "hoodie.datasource.write.table.type": table_type, "hoodie.compact.inline": compacts}
        for _ in range(_COMMITS):
            events.write.format("hudi").options(**options).mode("append").save(path)
        spark.read.format("hudi").load(path).where("amount > 1").count()
    events.select(sf.to_json(sf.struct("*")).alias("value")).write.text(str(folder / "text"), compression="gzip")
    map_in_arrow(events.selectExpr("to_json(struct(*)) AS value"), _as_they_are, "value string").collect()
    events.unpersist()
    _look_at_s3(spark)


def _events(spark: SparkSession) -> DataFrame:
    lines = spark.range(100).select(
        sf.to_json(
            sf.struct(
                sf.col("id").cast("string").alias("id"),
                sf.col("id").alias("version"),
                sf.lit("u").alias("op"),
                sf.rand().alias("amount"),
                sf.current_timestamp().alias("at"),
            )
        ).alias("data")
    )
    read = map_in_arrow(lines, _as_they_are, "data string")
    parsed = read.select(sf.from_json("data", _DDL, {"mode": "PERMISSIVE"}).alias("event"))
    return parsed.select("event.*").withColumn("dt", sf.date_format("at", "yyyy-MM-dd"))


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _look_at_s3(spark: SparkSession) -> None:
    jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
    for key, value in _S3A.items():
        conf.set(key, value)
    path = jvm.org.apache.hadoop.fs.Path("s3a://nowhere/nothing")  # type: ignore[union-attr]
    with suppress(Py4JJavaError):  # nobody answers
        path.getFileSystem(conf).exists(path)


def main(folder: Path, classes: str, class_list: Path) -> None:
    """Rehearse with a JVM that writes down what it loads."""
    conf = SparkConf(loadDefaults=False).setMaster("local[2]").setAppName("rehearsal").setAll(list(HUDI_CONF.items()))
    conf.set("spark.driver.extraClassPath", classes)
    conf.set("spark.driver.extraJavaOptions", f'"-XX:DumpLoadedClassList={class_list}"')
    conf.set("spark.local.dir", str(folder / "spark"))
    conf.set("spark.ui.enabled", "false")
    conf.set("spark.sql.shuffle.partitions", "2")
    with SparkSession.builder.config(conf=conf).getOrCreate() as spark:
        rehearse(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
