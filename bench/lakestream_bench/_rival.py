"""What people write in place of LakeStream, run as a program of its own: `python -m lakestream_bench._rival NAME …`.

Each keeps a merge-on-read Hudi table of order events from the same stream, on the same Spark and jars, and prints a
line of JSON for each batch that it has made visible. None of them deletes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from lakestream.sinks.hudi.options import TUNED
from lakestream.spark.session import SessionSettings, build_session
from lakestream_loadgen.events import EVENT_DDL

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

FOLLOW_SECONDS = 0.2
"""Between two looks at a shard without new records."""
LOOK_SECONDS = 0.5
"""Between two looks at what Structured Streaming has done, which cost CPU that is counted with it."""
PER_FILE = 10_000
"""Events of a file that Structured Streaming reads."""
CONNECTOR = "com.qubole.spark:spark-sql-kinesis_2.12:1.2.0_spark-3.0"

_HUDI = {
    "hoodie.table.name": "rival",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.table.ordering.fields": "version",
}
_TUNED = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
    **TUNED,
    "hoodie.upsert.shuffle.parallelism": "2",
}
"""What our sink sets too, as far as the DataSource takes it."""

NAMES = ("loop", "files", "files-tuned", "connector")
FROM_FILES = ("files", "files-tuned")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--stream", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--batch", type=int, required=True, help="events")
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--follow", action="store_true", help="go on at the tip of the stream; of the loop alone")
    chosen = parser.parse_args()
    packages = {"spark.jars.packages": CONNECTOR} if chosen.name == "connector" else {}
    spark = build_session(SessionSettings("rival", cores=chosen.cores, driver_memory="3g", hudi=True, conf=packages))
    try:
        _RUN[chosen.name](spark, chosen)
    finally:
        spark.stop()


def _tell(events: int) -> None:
    """A batch of so many is visible."""
    print(json.dumps({"events": events}), flush=True)


def _with_day(events: DataFrame) -> DataFrame:
    return events.selectExpr("*", "date_format(created_at, 'yyyy-MM-dd') AS dt")


def _loop(spark: SparkSession, chosen: argparse.Namespace) -> None:
    """boto3's get_records, `createDataFrame`, append."""
    client = boto3.client("kinesis", endpoint_url=chosen.endpoint)
    schema = spark.createDataFrame([], EVENT_DDL).schema
    times = [field.name for field in schema.fields if isinstance(field.dataType, TimestampType)]
    for datas in in_batches(records(client, chosen.stream, follow=chosen.follow), chosen.batch):
        rows = [json.loads(data) for data in datas]
        for row in rows:
            for name in times:
                row[name] = datetime.fromisoformat(row[name])
        _append(spark.createDataFrame(rows, schema), chosen)
        _tell(len(rows))


def records(client: KinesisClient, stream: str, *, follow: bool = False) -> Iterator[bytes]:
    """The data of what is in the stream, up to the tip or, with `follow`, until all its shards are closed.

    The shards are those of the beginning, as in the loops of tutorials.
    """
    shards = client.list_shards(StreamName=stream)["Shards"]
    iterators = {
        shard["ShardId"]: client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        for shard in shards
    }
    while iterators:
        for shard, iterator in list(iterators.items()):
            answer = client.get_records(ShardIterator=iterator, Limit=10_000)
            for record in answer["Records"]:
                yield record["Data"]
            iterators[shard] = answer.get("NextShardIterator") or ""
            at_tip = not answer["Records"] and not answer["MillisBehindLatest"]
            if not iterators[shard] or (at_tip and not follow):
                del iterators[shard]
            elif at_tip:
                time.sleep(FOLLOW_SECONDS)


def in_batches(datas: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Full ones."""
    batch: list[bytes] = []
    for data in datas:
        batch.append(data)
        if len(batch) == size:
            yield batch
            batch = []


def _append(events: DataFrame, chosen: argparse.Namespace) -> None:
    path = str(chosen.folder / "table")
    _with_day(events).write.format("hudi").options(**_HUDI).mode("append").save(path)


def _files(spark: SparkSession, chosen: argparse.Namespace) -> None:
    """Structured Streaming with Hudi's DataSource, from files that something else has written."""
    _stream(spark, chosen, {**_HUDI, **(_TUNED if chosen.name == "files-tuned" else {})}, _from_files(spark, chosen))


def _from_files(spark: SparkSession, chosen: argparse.Namespace) -> DataFrame:
    files = chosen.batch // PER_FILE
    return spark.readStream.schema(EVENT_DDL).option("maxFilesPerTrigger", files).json(str(chosen.folder / "events"))


def _connector(spark: SparkSession, chosen: argparse.Namespace) -> None:
    """Structured Streaming through the connector for Kinesis that can be had."""
    raw = (
        spark.readStream.format("kinesis")
        .option("streamName", chosen.stream)
        .option("endpointUrl", chosen.endpoint)
        .option("startingPosition", "TRIM_HORIZON")
        # Without them it asks for those of an EC2 instance, whatever the environment has.
        .option("awsAccessKeyId", os.environ["AWS_ACCESS_KEY_ID"])
        .option("awsSecretKey", os.environ["AWS_SECRET_ACCESS_KEY"])
        .load()
    )
    events = raw.selectExpr(f"from_json(cast(data AS string), '{EVENT_DDL}') AS event").select("event.*")
    _stream(spark, chosen, {**_HUDI, **_TUNED}, events)


def _stream(spark: SparkSession, chosen: argparse.Namespace, options: dict[str, str], events: DataFrame) -> None:
    query = (
        _with_day(events)
        .writeStream.format("hudi")
        .options(**options)
        .option("checkpointLocation", str(chosen.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(chosen.folder / "table"))
    )
    seen: set[int] = set()
    is_active = True
    while is_active:
        is_active = query.isActive
        for count in new_batches(query.recentProgress, seen):
            _tell(count)
        if is_active:
            time.sleep(LOOK_SECONDS)
    if (error := query.exception()) is not None:
        sys.exit(f"the query failed: {error}")


def new_batches(recent: Sequence[Mapping[str, Any]], seen: set[int]) -> Iterator[int]:
    """Events of the batches that have not been seen yet: Spark keeps the progress of the last hundred alone."""
    for progress in recent:
        if progress["batchId"] not in seen and progress["numInputRows"]:
            seen.add(progress["batchId"])
            yield progress["numInputRows"]


_RUN = {"loop": _loop, "files": _files, "files-tuned": _files, "connector": _connector}


if __name__ == "__main__":
    main()
