"""That Spark's JVM really maps the archive: one to which it does not apply would be ignored. And what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from lakestream.spark.archive import class_path, local_archive
from lakestream.spark.jars import ensure_jars

pytestmark = pytest.mark.spark


def test_a_session_starts_with_the_archive(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    maps = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    assert {line.split()[-1] for line in maps.splitlines() if ".jsa" in line} == {str(local_archive())}


def test_the_order_of_the_jars_changes_nothing_but_how_soon_a_class_is_found() -> None:
    """Some are in two jars: in Hudi's bundle, and where it has them from."""
    jars = ensure_jars()
    ordered = [Path(jar) for jar in class_path(jars).split(":")]
    by_name = sorted(jars.glob("*.jar"))
    assert sorted(ordered) == by_name != ordered
    assert _contents(ordered) == _contents(by_name)


def _contents(jars: Iterable[Path]) -> dict[str, int]:
    """Checksums of the classes and settings, as they are found."""
    found: dict[str, int] = {}
    for jar in jars:
        with ZipFile(jar) as archive:
            for file in archive.infolist():
                if file.filename.endswith((".class", ".properties", ".xml")) and "META-INF/" not in file.filename:
                    found.setdefault(file.filename, file.CRC)
    return found


def test_a_hadoop_configuration_has_no_settings_of_what_does_not_run_here(spark: SparkSession) -> None:
    """Hudi sends it along with each stage."""
    settings = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    assert settings.get("hadoop.tmp.dir")
    # Spark sets one.
    assert len(settings.getValByRegex(r"^(yarn|mapreduce)\.")) <= 1
