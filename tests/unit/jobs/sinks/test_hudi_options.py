from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark.sql.types import BinaryType, DataType, DateType, LongType, StringType, StructType, TimestampType

from lakestream.sinks.hudi.options import key_generator, record_options, retention, write_options
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream_api import HudiOutput, IndexType, Operation, TableType, TableVersion
from lakestream_api.hudi_options import NAMES, problem_of_option

ORDERS = HudiSettings(
    path="file:///lake/orders",
    table="orders",
    record_key=("order_id",),
    ordering_field="version",
    partition_by=("dt",),
)


def settings(**changes: object) -> HudiSettings:
    return HudiSettings(**{**vars(ORDERS), **changes})


def test_settings_are_taken_from_the_document() -> None:
    document = {
        "path": "s3://lake/orders",
        "tableVersion": 9,
        "tableType": "COPY_ON_WRITE",
        "recordKey": ["order_id", "line"],
        "orderingField": "version",
        "partitionBy": ["dt"],
        "deleteWhen": "op = 'd'",
        "index": {"type": "simple", "buckets": 7},
        "compaction": {"everyCommits": 3},
        "cleaning": {"retainHours": 0.25},
        "options": {"hoodie.parquet.compression.codec": "zstd"},
    }
    assert HudiSettings.of(HudiOutput.model_validate(document), "orders_hudi") == HudiSettings(
        path="s3a://lake/orders",
        table="orders_hudi",
        record_key=("order_id", "line"),
        ordering_field="version",
        table_version=TableVersion.NINE,
        table_type=TableType.COPY_ON_WRITE,
        partition_by=("dt",),
        delete_when="op = 'd'",
        index=IndexType.SIMPLE,
        buckets=7,
        compact_every=3,
        retain=timedelta(minutes=15),
        options={"hoodie.parquet.compression.codec": "zstd"},
    )


def test_a_batch_adds_to_no_file_that_a_clustering_may_merge() -> None:
    document = {"path": "s3://lake/orders", "recordKey": ["id"], "operation": "insert", "clustering": {}}
    document["options"] = {"hoodie.parquet.small.file.limit": "1000000"}
    found = HudiSettings.of(HudiOutput.model_validate(document), "orders")
    assert found.cluster_into == 128 << 20
    options = write_options(found)
    assert options["hoodie.parquet.small.file.limit"] == "0"
    assert options["hoodie.clustering.plan.strategy.small.file.limit"] == str(64 << 20)
    assert write_options(replace(found, cluster_into=None))["hoodie.parquet.small.file.limit"] == "1000000"


@pytest.mark.parametrize(
    ("index", "buckets"),
    [
        ({}, 4),
        ({"buckets": 3}, 3),
        ({"expectedPartitionSize": "100Mi"}, 4),
        ({"expectedPartitionSize": "20Gi"}, 20),
        ({"expectedPartitionSize": "20481Mi"}, 21),
        ({"expectedPartitionSize": "100Ti"}, 10_000),
    ],
)
def test_buckets_follow_from_the_expected_size_of_a_partition(index: dict[str, object], buckets: int) -> None:
    document = {"path": "s3://lake/orders", "recordKey": ["id"], "orderingField": "version", "index": index}
    assert HudiSettings.of(HudiOutput.model_validate(document), "orders").buckets == buckets


def test_upserts_use_the_bucket_index_and_order_by_the_field() -> None:
    options = write_options(ORDERS)
    assert options["hoodie.index.type"] == "BUCKET"
    assert options["hoodie.bucket.index.num.buckets"] == "4"
    assert options["hoodie.parquet.bloom.filter.enabled"] == "false"
    assert options["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert options["hoodie.table.ordering.fields"] == "version"


@pytest.mark.parametrize("version", list(TableVersion))
def test_a_table_is_never_taken_to_another_version(version: TableVersion) -> None:
    options = write_options(settings(table_version=version))
    assert options["hoodie.write.table.version"] == str(version.value)
    assert options["hoodie.write.auto.upgrade"] == "false"


def test_inserts_never_use_an_index_that_would_merge_their_rows() -> None:
    options = write_options(settings(operation=Operation.INSERT, ordering_field=None))
    assert options["hoodie.index.type"] == "SIMPLE"
    assert options["hoodie.combine.before.insert"] == "false"
    assert options["hoodie.record.merge.mode"] == "COMMIT_TIME_ORDERING"
    assert "hoodie.table.ordering.fields" not in options


def test_other_indexes_keep_their_filters() -> None:
    options = write_options(settings(index=IndexType.GLOBAL_BLOOM))
    assert options["hoodie.index.type"] == "GLOBAL_BLOOM"
    assert "hoodie.parquet.bloom.filter.enabled" not in options
    assert "hoodie.bucket.index.num.buckets" not in options


@pytest.mark.parametrize(
    ("keys", "partitions", "expected"),
    [
        (("a",), (), "NON_PARTITION"),
        (("a", "b"), (), "NON_PARTITION"),
        (("a",), ("p",), "SIMPLE"),
        (("a", "b"), ("p",), "COMPLEX"),
        (("a",), ("p", "q"), "COMPLEX"),
    ],
)
def test_key_generator(keys: tuple[str, ...], partitions: tuple[str, ...], expected: str) -> None:
    assert key_generator(settings(record_key=keys, partition_by=partitions)) == expected


@pytest.mark.parametrize("commits", [0, 1, 30, 500])
def test_the_timeline_reaches_back_further_than_the_cleaner_and_the_replays(commits: int) -> None:
    options = retention(commits)
    assert int(options["hoodie.clean.commits.retained"]) == max(commits, 1)
    assert int(options["hoodie.keep.min.commits"]) >= max(commits + 1, 20)
    assert int(options["hoodie.keep.max.commits"]) > int(options["hoodie.keep.min.commits"])


def test_an_option_of_the_document_beats_a_tuned_one() -> None:
    assert write_options(ORDERS)["hoodie.metadata.enable"] == "false"
    changed = write_options(settings(options={"hoodie.metadata.enable": "true"}))
    assert changed["hoodie.metadata.enable"] == "true"


def test_no_option_that_a_document_may_give_is_one_of_ours() -> None:
    """It would be overridden without a word, or would override what exactly-once rests on."""
    for document in (ORDERS, settings(operation=Operation.INSERT), settings(index=IndexType.BLOOM)):
        ours = write_options(document)
        for name in ours.keys() & NAMES:
            assert write_options(replace(document, options={name: "x"}))[name] == "x"
        assert {name for name in ours if problem_of_option(name) is None} == {
            "hoodie.embed.timeline.server",
            "hoodie.metadata.enable",
            "hoodie.parquet.compression.codec",
            "hoodie.write.markers.type",
        }


def test_rows_are_told_apart_by_the_partition_too_unless_the_index_is_global() -> None:
    assert ORDERS.identity == ("order_id", "dt")
    assert settings(index=IndexType.GLOBAL_SIMPLE).identity == ("order_id",)


def test_the_layout_that_a_table_cannot_change() -> None:
    assert ORDERS.layout == "bucket:4"
    assert settings(index=IndexType.BLOOM).layout == "free"
    assert settings(operation=Operation.INSERT).layout == "free"


@pytest.mark.parametrize(
    ("key", "partition", "table_type", "as_spark"),
    [
        (StringType(), DateType(), TableType.COPY_ON_WRITE, True),
        (LongType(), StringType(), TableType.COPY_ON_WRITE, True),
        (StringType(), StringType(), TableType.MERGE_ON_READ, False),
        (TimestampType(), StringType(), TableType.COPY_ON_WRITE, False),
        (StringType(), TimestampType(), TableType.COPY_ON_WRITE, False),
        (BinaryType(), StringType(), TableType.COPY_ON_WRITE, False),
    ],
)
def test_rows_are_not_made_avro_where_that_changes_neither_keys_nor_log_files(
    key: DataType, partition: DataType, table_type: TableType, as_spark: bool
) -> None:
    columns = StructType().add("order_id", key).add("version", TimestampType()).add("dt", partition)
    assert bool(record_options(settings(table_type=table_type), columns)) == as_spark
    in_all = settings(table_type=table_type, index=IndexType.GLOBAL_SIMPLE)
    assert not record_options(in_all, columns), "Hudi would move a key to a folder of some bytes"
