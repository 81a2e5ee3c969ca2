"""The cache of jars, with a program in Java's place that does what Ivy does: put jars where it is told."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from lakestream.spark import jars
from lakestream.spark.jars import JarsUnavailableError, ensure_jars, install_jars, jars_cache

IVY = """#!/bin/sh
echo run >> "{log}"
while [ "$1" != "-retrieve" ]; do shift; done
folder=$(dirname "$2")
{body}
"""


@pytest.fixture
def resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the stand-in's runs; its script can be replaced with `install`."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    install(tmp_path, 'echo jar > "$folder/one-1.0.jar"')
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of PySpark's own jars."""
    folder = tmp_path / "pyspark-jars"
    folder.mkdir()
    for name in ("hadoop-client-api-3.3.4", "hadoop-client-runtime-3.3.4", "annotations-17.0.0", "ivy-2.5.3"):
        (folder / f"{name}.jar").write_text("old")
    monkeypatch.setattr(jars, "spark_jars", lambda: folder)
    return folder


THEIRS = {"annotations-17.0.0.jar", "ivy-2.5.3.jar", "empty-hadoop-defaults.jar"}
"""What stays of them, and what is added."""


def install(folder: Path, body: str) -> None:
    java = folder / "java" / "bin" / "java"
    java.write_text(IVY.format(log=folder / "runs", body=body))
    java.chmod(0o755)


def test_the_cache_is_where_the_environment_says() -> None:
    assert jars_cache({"LAKESTREAM_JARS": "/jars", "XDG_CACHE_HOME": "/cache"}) == Path("/jars")
    assert jars_cache({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/lakestream/jars")
    assert jars_cache({}) == Path.home() / ".cache/lakestream/jars"


def test_jars_are_resolved_once(tmp_path: Path, resolver: Path) -> None:
    first = ensure_jars(tmp_path / "cache")
    assert {jar.name for jar in first.iterdir()} == {"one-1.0.jar", *THEIRS}
    assert ensure_jars(tmp_path / "cache") == first
    assert resolver.read_text().splitlines() == ["run"]


def test_a_failed_run_leaves_nothing_and_says_why(tmp_path: Path, resolver: Path) -> None:
    install(tmp_path, 'echo jar > "$folder/one-1.0.jar"; echo "UNRESOLVED DEPENDENCY: hudi" >&2; exit 1')
    with pytest.raises(JarsUnavailableError, match="UNRESOLVED DEPENDENCY: hudi"):
        ensure_jars(tmp_path / "cache")
    install(tmp_path, 'echo jar > "$folder/two-1.0.jar"')
    assert {jar.name for jar in ensure_jars(tmp_path / "cache").iterdir()} == {"two-1.0.jar", *THEIRS}


def test_of_two_processes_one_resolves_and_the_other_waits(tmp_path: Path, resolver: Path) -> None:
    # The first run only ends once the second process is known to wait for the lock.
    (tmp_path / "gate").mkdir()
    os.mkfifo(tmp_path / "gate" / "open")
    install(tmp_path, f'read _ < "{tmp_path}/gate/open"; echo jar > "$folder/one-1.0.jar"')
    code = (
        f"from pathlib import Path; from lakestream.spark.jars import *; print(ensure_jars(Path('{tmp_path}/cache')))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (tmp_path / "gate" / "open").write_text("go\n")
    folders = {process.communicate(timeout=60)[0].strip() for process in both}
    assert len(folders) == 1
    assert "one-1.0.jar" in {jar.name for jar in Path(folders.pop()).iterdir()}
    assert resolver.read_text().splitlines() == ["run"]


def test_every_version_is_pinned_and_hadoop_is_of_one_version() -> None:
    root = ET.fromstring(files("lakestream.spark").joinpath("ivy.xml").read_bytes())
    versions = {item.attrib["name"]: item.attrib["rev"] for item in root.iter("dependency")}
    assert all(rev[0].isdigit() and not any(mark in rev for mark in "+[](),") for rev in versions.values())
    assert len({rev for name, rev in versions.items() if name.startswith("hadoop-")}) == 1


@pytest.mark.usefixtures("resolver")
def test_in_an_image_our_hadoop_is_the_only_one(theirs: Path, tmp_path: Path) -> None:
    install(tmp_path, 'for jar in hadoop-client-api-3.4.2 annotations-2.35.4; do echo new > "$folder/$jar.jar"; done')
    install_jars(theirs)
    (added,) = theirs.glob("empty-*.jar")
    with zipfile.ZipFile(added) as archive:
        assert {archive.read(name) for name in archive.namelist()} == {b"<configuration/>"}
    found = {jar.stem: jar.read_text().strip() for jar in theirs.iterdir() if jar != added}
    assert found == {
        "hadoop-client-api-3.4.2": "new",
        "annotations-2.35.4": "new",
        "annotations-17.0.0": "old",
        "ivy-2.5.3": "old",
    }
