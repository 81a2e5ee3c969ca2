"""A Hudi table in a folder: files without checksums beside them, as Hadoop keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hudi_orders import Order, opened, ref, rows_of, snapshot, upserts
from lakestream_api import TableType

PROPERTIES = ".hoodie/hoodie.properties"


def with_checksums(spark: SparkSession) -> Any:
    """The folder as Hadoop sees it by its defaults."""
    jvm: Any = spark._jvm
    files = jvm.org.apache.hadoop.fs.LocalFileSystem()
    files.initialize(jvm.java.net.URI("file:///"), jvm.org.apache.hadoop.conf.Configuration(False))
    return files


def test_no_file_has_a_checksum_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ)
    with opened(spark, settings) as sink:
        for batch in range(3):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch), Order("b", batch, "d")]), replay=False)
        sink.finish_services()
    assert snapshot(spark, settings) == {"a": 2}
    assert not [*tmp_path.rglob("*.crc")]


def test_a_table_that_was_begun_with_checksums_can_be_read_by_who_heeds_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = upserts(tmp_path, TableType.COPY_ON_WRITE)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 0)]), replay=False)
    properties = tmp_path / "orders" / PROPERTIES
    of_others = [line for line in properties.read_bytes().splitlines(keepends=True) if b"lakestream" not in line]
    files, path = with_checksums(spark), spark._jvm.org.apache.hadoop.fs.Path(str(properties))  # type: ignore[union-attr]
    stream = files.create(path, True)
    stream.write(b"".join(of_others))
    stream.close()
    assert properties.with_name(".hoodie.properties.crc").exists()

    with opened(spark, settings) as sink:
        sink.write(ref(1), rows_of(spark, [Order("b", 0)]), replay=False)

    stream = files.open(path)
    assert b"lakestream.layout" in bytes(stream.readAllBytes())
    stream.close()
