"""How Spark is started where it lives for seconds and has a few rows: to compile what it runs would only take time."""

from __future__ import annotations

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries, by Spark."""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
"""Classes, by Java."""


def submit_args(*options: str) -> str:
    """What a driver's JVM is started with, beside its own settings."""
    return " ".join([*options, *(f"--conf {name}={value}" for name, value in INTERPRETED.items()), "pyspark-shell"])


QUICK = {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS, "PYSPARK_SUBMIT_ARGS": submit_args()}
"""The environment of a driver."""
