"""What the image of drivers and executors makes of what Spark gives its pods."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[3] / "images/spark/entrypoint.sh"


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> list[str]:
    """The words before those of an executor, with a `tini` that says what it is to run."""
    (tmp_path / "tini").write_text('#!/bin/sh\nshift\nprintf "%s\\n" "$@"\n', "utf-8")
    (tmp_path / "tini").chmod(0o755)
    (tmp_path / "classpath").write_text("/jars/a.jar:/jars/b.jar", "utf-8")
    variables = {
        "HOME": f"{tmp_path}",
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SPARK_HOME": f"{tmp_path}",
        "JAVA_HOME": "/java",
        "SPARK_CONF_DIR": "/conf",
        "SPARK_EXECUTOR_MEMORY": "1024m",
        "SPARK_JAVA_OPT_0": "-Done=1",
        "SPARK_JAVA_OPT_1": "-Dtwo=a b",
    }
    names = ("DRIVER_URL", "EXECUTOR_ID", "EXECUTOR_CORES", "APPLICATION_ID", "EXECUTOR_POD_IP")
    others = (*names, "RESOURCE_PROFILE_ID", "EXECUTOR_POD_NAME")
    variables |= {f"SPARK_{name}": name.lower() for name in others}
    return ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]


def _java(run: list[str], *more: str) -> list[str]:
    done = subprocess.run(
        [*run, *more, "bash", str(ENTRYPOINT), "executor"], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.splitlines()


def _classes(words: list[str]) -> str:
    return words[words.index("-cp") + 1]


def test_an_executor_begins_with_the_jars_that_the_archive_is_for(run: list[str]) -> None:
    words = _java(run)
    assert words[:3] == ["/java/bin/java", "-Done=1", "-Dtwo=a b"]
    assert _classes(words).startswith("/jars/a.jar:/jars/b.jar:/conf:")


def test_a_user_without_a_name_gets_one(run: list[str], tmp_path: Path) -> None:
    words = _java(run)
    assert not (tmp_path / "passwd").exists()
    (tmp_path / "getent").write_text("#!/bin/sh\nexit 2\n", "utf-8")
    (tmp_path / "getent").chmod(0o755)
    assert _java(run) == words
    assert (tmp_path / "passwd").read_text("utf-8") == f"spark:x:{os.getuid()}:100::/tmp:/bin/false\n"


def test_an_executors_own_class_path_goes_first(run: list[str]) -> None:
    # Spark hands spark.executor.extraClassPath on in SPARK_CLASSPATH.
    assert _classes(_java(run, "SPARK_CLASSPATH=/mine/*")).startswith("/mine/*:/jars/a.jar:/jars/b.jar:/conf:")
