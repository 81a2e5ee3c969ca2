"""Files of the local disk: as Hadoop makes them, but without a process for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakestream.spark.local_files import LOCAL_FILES

pytestmark = pytest.mark.spark

FILES = 20


@pytest.fixture(name="files")
def _files(spark: SparkSession) -> Any:
    return _by_uri(spark)


def _by_uri(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), hadoop)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o000, 0o1777])
def test_a_mode_is_set_as_hadoop_sets_it(spark: SparkSession, files: Any, tmp_path: Path, mode: int) -> None:
    jvm: Any = spark._jvm
    hadoops = jvm.org.apache.hadoop.fs.RawLocalFileSystem()
    hadoops.initialize(jvm.java.net.URI("file:///"), spark._jsc.hadoopConfiguration())  # type: ignore[attr-defined]
    wanted = jvm.org.apache.hadoop.fs.permission.FsPermission(f"{mode:04o}")
    found = []
    for number, made_by in enumerate((files, hadoops)):
        folder = tmp_path / f"a folder {number}"
        folder.mkdir()
        made_by.setPermission(jvm.org.apache.hadoop.fs.Path(str(folder)), wanted)
        found.append(folder.stat().st_mode & 0o7777)
    assert found == [mode, mode]


def test_what_is_not_there_has_no_mode(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    with pytest.raises(Exception, match=r"NoSuchFileException.*gone"):
        files.setPermission(
            jvm.org.apache.hadoop.fs.Path(str(tmp_path / "gone")),
            jvm.org.apache.hadoop.fs.permission.FsPermission("644"),
        )


def test_files_are_made_without_a_process(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    assert files.getClass().getName() == LOCAL_FILES
    before = _faults_of_children(pid)
    for number in range(FILES):
        files.create(jvm.org.apache.hadoop.fs.Path(str(tmp_path / f"{number}" / "new"))).close()
    assert len([*tmp_path.glob("*/new")]) == FILES
    assert _faults_of_children(pid) == before


def _faults_of_children(pid: int) -> int:
    """Page faults of the processes that it has started and that have ended: any has hundreds."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8])
