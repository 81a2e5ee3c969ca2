"""What Trino 476 makes of our tables, which it knows by a Hive metastore: held against the fold of what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engines import trino
from engines.metastore import Metastore
from engines.orders import BATCHES, COLUMNS, MORE, WIDER, Written, as_read, hudi_output
from engines.trino import Trino
from lakestream.catalogs import keep_catalog
from lakestream_api import JsonOutput

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.parametrize("metastore", ["3.1.3"], indirect=True),
]

RIGHT = "all rows"
OLD = "base files only"
"""Without a word, and under the name of all rows."""
REFUSED_9 = "Could not load archived commit timeline"


@pytest.fixture(scope="module")
def server(metastore: Metastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    with trino.running(tmp_path_factory.mktemp("trino"), metastore.uri) as started:
        yield started


def write(written: Written) -> None:
    """Two batches, two more with more columns, and each time the catalog."""
    for columns, batches in ((COLUMNS, BATCHES), (WIDER, MORE)):
        written.write(columns, *batches)
        with written.opened(columns) as sink:
            keeper = keep_catalog(written.output, sink, written.spark, written.s3)
            assert keeper is not None
            keeper.close()
            assert keeper.status.error == ""


def verdict(server: Trino, table: str, written: Written) -> str:
    """What a query for all rows gives."""
    try:
        rows = as_read(server.rows(f"SELECT * FROM {table}"))
    except trino.Error as error:
        return str(error)
    if rows == as_read(written.rows()):
        return RIGHT
    # Before the first compaction there are base files of the first batch: that is how it is written to new file groups.
    return OLD if rows == as_read(written.rows(max(written.compacted(), 1))) else f"other rows: {rows}"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param({"merges": False}, RIGHT, id="cow-v6"),
        pytest.param({"merges": True}, OLD, id="mor-v6"),
        pytest.param({"merges": True, "compact_every": 3}, OLD, id="mor-v6-compacted"),
        pytest.param({"merges": True, "compact_every": 1}, RIGHT, id="mor-v6-just-compacted"),
        pytest.param({"merges": False, "version": 9}, REFUSED_9, id="cow-v9"),
        pytest.param({"merges": True, "version": 9, "compact_every": 3}, REFUSED_9, id="mor-v9"),
    ],
)
def test_hudi_tables(
    spark: SparkSession, metastore: Metastore, server: Trino, database: str, tmp_path: Path,
    output: dict[str, Any], expected: str,
) -> None:  # fmt: skip
    catalog = {"hive": {"uri": metastore.uri, "database": database, "table": "orders"}}
    written = Written(spark, hudi_output(f"file://{tmp_path}/orders", catalog=catalog, **output))
    write(written)
    for name in ("orders", "orders_ro", "orders_rt") if output["merges"] else ("orders",):
        assert expected in verdict(server, f"hudi.{database}.{name}", written)
        assert "Cannot query Hudi table" in verdict(server, f"hive.{database}.{name}", written)


def test_json_tables(spark: SparkSession, metastore: Metastore, server: Trino, database: str, tmp_path: Path) -> None:
    written = Written(
        spark,
        JsonOutput.model_validate({
            "path": f"file://{tmp_path}/lines",
            "partitionBy": ["dt"],
            "catalog": {"hive": {"uri": metastore.uri, "database": database, "table": "lines"}},
        }),
    )  # fmt: skip
    write(written)
    rows = server.rows(
        "SELECT id, version, dt, tags, part, note, cents, day, from_base64(raw) AS raw, "
        f"CAST(from_iso8601_timestamp_nanos(at) AS timestamp(6)) AS at FROM hive.{database}.lines"
    )
    assert as_read(rows) == as_read(written.rows())
