"""The archive of classes: what it is named after, and that it is there in whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.spark import archive
from lakestream.spark.archive import archive_of, archive_options, class_path, ensure_archive, make_archive
from lakestream.spark.jars import JarsUnavailableError


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A stand-in for Java that dumps as it is told by `dump`."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    return home


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark is started; everything else is run."""
    run = archive.run_java
    monkeypatch.setattr(
        archive, "run_java", lambda what, *rest: "" if what.startswith("the rehearsal") else run(what, *rest)
    )


def dump(java: Path, body: str) -> None:
    script = java / "bin" / "java"
    script.write_text(
        f"#!/bin/sh\nfor option; do case $option in -XX:SharedArchiveFile=*) file=${{option#*=}};; esac; done\n{body}\n"
    )
    script.chmod(0o755)


def test_a_class_path_has_the_jars_that_are_asked_most_and_the_others_by_name(tmp_path: Path) -> None:
    names = ["empty-hadoop-defaults", "spark-core_2.12-3.5.9", "hudi-spark3.5-bundle_2.12-1.2.0", "a", "z"]
    for name in ("README", *(f"{name}.jar" for name in reversed(names))):
        (tmp_path / name).touch()
    assert class_path(tmp_path) == ":".join(f"{tmp_path}/{name}.jar" for name in names)


def test_another_class_path_or_java_has_another_archive(tmp_path: Path, java: Path) -> None:
    first = archive_of("a.jar:b.jar", java, tmp_path)
    assert archive_of("a.jar:b.jar", java, tmp_path) == first
    assert archive_of("b.jar:a.jar", java, tmp_path) != first
    (java / "release").write_text('JAVA_VERSION="17.0.2"\n')
    assert archive_of("a.jar:b.jar", java, tmp_path) != first


def test_a_jvm_is_told_of_an_archive_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "classes.jsa"
    assert archive_options(file) == []
    file.touch()
    assert archive_options(file) == [f"-XX:SharedArchiveFile={file}"]


@pytest.mark.usefixtures("rehearsed")
def test_an_archive_is_made_once(tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    monkeypatch.setenv("LAKESTREAM_JARS", str(cache))
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setattr(archive, "ensure_jars", lambda: cache / "jars")
    monkeypatch.setattr(archive, "ensure_local_files", lambda jars: jars.with_name("local-files.jar"))
    dump(java, f'echo run >> {tmp_path}/runs; echo "$*" > "$file"')
    made = ensure_archive()
    assert ensure_archive() == made
    assert (tmp_path / "runs").read_text() == "run\n"
    assert "-Xshare:dump" in made.read_text()


@pytest.mark.usefixtures("rehearsed")
def test_a_dump_that_fails_leaves_nothing_and_says_why(tmp_path: Path, java: Path) -> None:
    (tmp_path / "cache").mkdir()
    dump(java, 'echo half > "$file"; echo "no space left"; exit 1')
    with pytest.raises(JarsUnavailableError, match="the dump for the archive of classes failed:\nno space left"):
        make_archive(tmp_path / "cache" / "classes.jsa", "a.jar", java)
    assert list((tmp_path / "cache").iterdir()) == []
