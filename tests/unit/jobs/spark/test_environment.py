"""What of a shell's environment local Spark starts with, and what it refuses to start with."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pyspark
import pytest

from lakestream.spark.environment import LocalSparkError, take_local_environment


def test_what_is_said_of_another_spark_or_hadoop_is_taken_away() -> None:
    others = {
        "SPARK_REMOTE": "sc://x",
        "PYSPARK_PIN_THREAD": "false",
        "HADOOP_CONF_DIR": "/etc",
        "YARN_CONF_DIR": "/etc",
    }
    environ = {"PATH": os.environ["PATH"], "AWS_REGION": "r", **others}
    take_local_environment(environ)
    assert environ["SPARK_HOME"] == str(Path(pyspark.__file__).parent)
    assert environ["PYSPARK_PYTHON"] == sys.executable
    assert environ["AWS_REGION"] == "r"
    assert not others.keys() & environ.keys()


def test_the_heap_that_a_query_is_given_stays() -> None:
    environ = {"PATH": os.environ["PATH"], "SPARK_DRIVER_MEMORY": "4g"}
    take_local_environment(environ)
    assert environ["SPARK_DRIVER_MEMORY"] == "4g"


def test_another_pyspark_on_the_path_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__file__", "/opt/spark/python/pyspark/__init__.py")
    with pytest.raises(LocalSparkError, match=r"the PySpark in /opt/spark/python/pyspark before .*PYTHONPATH"):
        take_local_environment({})


def test_a_user_without_a_name_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `docker run --user 12345`: Hadoop fails with "Invalid UID, could not determine effective user"."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(LocalSparkError, match=r"has none on this machine: add a line for it to /etc/passwd"):
        take_local_environment({})


def test_a_folder_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(LocalSparkError, match=r"started in is not there any more.*change to another one"):
        take_local_environment({})
