"""How Spark is started where it lives for seconds and has a few rows: to compile what it runs would only take time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries, by Spark."""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m"
"""Classes, by Java: not as far as it could, but without giving up what is compiled for what is not yet; nor is all
of the heap collected because there are many of them."""


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Queries of a session that others share are not compiled meanwhile."""
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in INTERPRETED:
            spark.conf.unset(name)


def submit_args(*options: str) -> str:
    """What a driver's JVM is started with, beside its own settings."""
    return " ".join([*options, *(f"--conf {name}={value}" for name, value in INTERPRETED.items()), "pyspark-shell"])


QUICK = {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS, "PYSPARK_SUBMIT_ARGS": submit_args()}
"""The environment of a driver."""
