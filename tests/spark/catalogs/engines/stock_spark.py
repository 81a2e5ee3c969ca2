"""Queries by a Spark of its own, with Hudi's bundle, that knows of our tables by a Hive metastore alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engines.orders import plain
from lakestream.spark.jars import ensure_jars


def asked(uri: str, folder: Path, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The rows of each query.

    Args:
        uri: of the metastore.
        folder: for what Spark leaves behind.
        queries: in SQL.
    """
    child = subprocess.run(
        [sys.executable, "-m", "engines.stock_spark", uri, str(folder)],
        input=json.dumps(list(queries)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert child.returncode == 0, child.stderr[-4000:]
    found: list[list[dict[str, Any]]] = json.loads(child.stdout.splitlines()[-1])
    return found


def main(uri: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", f"{ensure_jars()}/*")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.sql.warehouse.dir", folder)
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    found = [[row.asDict(recursive=True) for row in spark.sql(query).collect()] for query in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(found, default=plain) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
