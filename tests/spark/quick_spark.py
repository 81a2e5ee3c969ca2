"""How Spark is started where it lives for seconds and has a few rows: to compile what it runs would only take time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

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


def quick(conf: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The environment of a driver; `conf` is more of Spark's configuration."""
    properties = (f"-D{name}={value}" for name, value in {**INTERPRETED, **conf}.items())
    return {"JAVA_TOOL_OPTIONS": " ".join([JAVA_OPTIONS, *properties])}
