"""The class by which local mode makes files without starting a process for each (LocalFiles.java), as a jar.

Compiled once, by the compiler that Spark has for its queries: that takes a second, and no JDK. Not for images: on a
cluster a lake is on S3.
"""

import hashlib
import os
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path

from lakestream.spark.jars import JarsUnavailableError, locked, run_java
from lakestream.spark.java import java_home

LOCAL_FILES = "dev.lakestream.LocalFiles"
"""For `fs.file.impl`."""

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
"""Janino's, with the options of javac."""
_SECONDS = 120


def ensure_local_files(jars: Path) -> Path:
    """The jar, beside the folder of jars that it is compiled for.

    Of several processes one makes it, and others wait: to an archive of classes, one that is made again is another.

    Raises:
        JarsUnavailableError: it could not be compiled; the message carries the end of the compiler's output.
    """
    source = files("lakestream.spark").joinpath("LocalFiles.java").read_bytes()
    jar = jars.parent / f"local-files-{hashlib.sha256(jars.name.encode() + source).hexdigest()[:12]}.jar"
    if not jar.is_file():
        with locked(jar.parent / "lock"), tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            if not jar.is_file():
                _compile(source, jars, Path(scratch)).rename(jar)
    return jar


def _compile(source: bytes, jars: Path, folder: Path) -> Path:
    file, classes, packed = folder / "LocalFiles.java", folder / "classes", folder / "packed.jar"
    file.write_bytes(source)
    classes.mkdir()
    path = os.pathsep.join(map(str, jars.glob("*.jar")))
    command = [str(java_home() / "bin" / "java"), "-cp", path, _COMPILER, "-classpath", path, "-d", str(classes)]
    output = run_java(f"compiling {file.name}", [*command, str(file)], _SECONDS)
    compiled = sorted(classes.rglob("*.class"))
    if not compiled:
        raise JarsUnavailableError(f"{file.name} was not compiled:\n{output[-2000:]}")
    with zipfile.ZipFile(packed, "w") as archive:
        for found in compiled:
            archive.write(found, str(found.relative_to(classes)))
    return packed
