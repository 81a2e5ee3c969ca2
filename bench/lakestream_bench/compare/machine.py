"""The facts that figures depend on: versions, machine, and how Spark was set."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import lakestream
import lakestream_api
import lakestream_loadgen
from lakestream.spark.jars import ensure_jars
from lakestream_bench import _counting_s3
from lakestream_bench.compare.results import Setup
from lakestream_bench.compare.scenarios import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_PACKAGES = ("lakestream", "lakestream-loadgen", "lakestream-localkinesis", "pyspark", "pyarrow", "duckdb")
_OF_THIS_RUN = (
    "spark.app.",
    "spark.driver.port",
    "spark.driver.extraClassPath",
    "spark.local.dir",
    "spark.sql.warehouse.dir",
    # Of counting requests, for which nothing is timed.
    "fs.s3",
    "JavaOptions",
)
"""Settings that differ from run to run or name folders of this machine, and change no figure."""


def setup(spark: SparkSession, scenarios: Sequence[Scenario], warm_repetitions: int) -> Setup:
    """Of this machine and session."""
    jvm: Any = spark._jvm
    return Setup(
        scenarios=tuple(scenarios),
        versions={
            **{package: version(package) for package in _PACKAGES},
            "python": platform.python_version(),
            "java": str(jvm.java.lang.System.getProperty("java.runtime.version")),
            "hudi": _hudi(),
            "hudi-rs": version("hudi"),
            "sources": digest_of(*_sources()),
        },
        machine={
            "system": platform.platform(),
            "processor": _processor(),
            "cores": str(os.cpu_count()),
            "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        },
        spark_conf={
            name: value
            for name, value in sorted(spark.sparkContext.getConf().getAll())
            if not any(part in name for part in _OF_THIS_RUN)
        },
        warm_repetitions=warm_repetitions,
    )


def _sources() -> list[Path]:
    """What makes events, tables and figures."""
    packages = [Path(str(package.__file__)).parent for package in (lakestream, lakestream_api, lakestream_loadgen)]
    return [*packages, Path(__file__).parent, Path(str(_counting_s3.__file__))]


def digest_of(*places: Path) -> str:
    """Of files, and of all that packages consist of: a version stays while they are worked on, and figures do not."""
    digest = hashlib.sha256()
    for place in places:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(place.parent)} {file.stat().st_size}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _hudi() -> str:
    """Of the jar on the class path, as its file is named."""
    return next((jar.stem for jar in ensure_jars().glob("hudi-*.jar")), "unknown")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
