"""That Spark's JVM really maps the archive: one to which it does not apply would be ignored. And what it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakestream.spark.archive import local_archive

pytestmark = pytest.mark.spark


def test_a_session_starts_with_the_archive(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    maps = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    assert {line.split()[-1] for line in maps.splitlines() if ".jsa" in line} == {str(local_archive())}


def test_a_hadoop_configuration_has_no_settings_of_what_does_not_run_here(spark: SparkSession) -> None:
    """Hudi sends it along with each stage."""
    settings = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    assert settings.get("hadoop.tmp.dir")
    # Spark sets one.
    assert len(settings.getValByRegex(r"^(yarn|mapreduce)\.")) <= 1
