"""The jar of our class for local files, with a program in Java's place that does what the compiler does."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakestream.spark.jars import JarsUnavailableError
from lakestream.spark.local_files import ensure_local_files

COMPILER = """#!/bin/sh
echo run >> "{log}"
while [ "$1" != "-d" ]; do shift; done
folder=$2
{body}
"""
COMPILES = 'mkdir "$folder/dev"; echo class > "$folder/dev/LocalFiles.class"'


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    folder = tmp_path / "cache" / "fingerprint"
    folder.mkdir(parents=True)
    return folder


def install(folder: Path, body: str) -> None:
    java = folder / "java" / "bin" / "java"
    java.write_text(COMPILER.format(log=folder / "runs", body=body))
    java.chmod(0o755)


def test_it_is_compiled_once_for_each_folder_of_jars(tmp_path: Path, jars: Path) -> None:
    install(tmp_path, COMPILES)
    jar = ensure_local_files(jars)
    with zipfile.ZipFile(jar) as archive:
        assert archive.namelist() == ["dev/LocalFiles.class"]
    assert ensure_local_files(jars) == jar
    assert {*jars.parent.iterdir()} == {jars, jar, jars.with_name("lock")}
    other = jars.with_name("other")
    other.mkdir()
    assert ensure_local_files(other) != jar
    assert (tmp_path / "runs").read_text().splitlines() == ["run", "run"]


def test_of_two_processes_one_compiles_and_the_other_waits(tmp_path: Path, jars: Path) -> None:
    # Without the lock the second one would find nothing compiled, too, and wait at the gate for ever.
    (tmp_path / "gate").mkdir()
    os.mkfifo(tmp_path / "gate" / "open")
    install(tmp_path, f'read _ < "{tmp_path}/gate/open"; {COMPILES}')
    imports = "from pathlib import Path; from lakestream.spark.local_files import ensure_local_files"
    code = f"{imports}; print(ensure_local_files(Path({str(jars)!r})))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (tmp_path / "gate" / "open").write_text("go\n")
    assert len({process.communicate(timeout=60)[0].strip() for process in both}) == 1
    assert (tmp_path / "runs").read_text().splitlines() == ["run"]


@pytest.mark.parametrize("status", [0, 1])
def test_a_failed_run_leaves_nothing_and_says_why(tmp_path: Path, jars: Path, status: int) -> None:
    install(tmp_path, f'echo "CompileException: no such class" >&2; exit {status}')
    with pytest.raises(JarsUnavailableError, match=r"LocalFiles\.java .*\n.*CompileException: no such class"):
        ensure_local_files(jars)
    assert {*jars.parent.iterdir()} == {jars, jars.with_name("lock")}
    install(tmp_path, COMPILES)
    assert ensure_local_files(jars).is_file()
