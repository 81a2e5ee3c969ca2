"""The archive of the classes that a driver loads (application class-data sharing, JEP 310).

A JVM that maps it need not find, read, parse and verify some 17,000 classes. It holds for one Java and for class paths
that begin with its own, in the same order; a JVM to which it does not apply goes on without.

In an image `python -m lakestream.spark.archive` puts it beside PySpark's jars, with the class path that it holds for.
"""

import hashlib
import logging
import os
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from lakestream.spark.environment import take_local_environment
from lakestream.spark.jars import NO_DEFAULTS, ensure_jars, jars_cache, locked, run_java, spark_jars
from lakestream.spark.java import java_home
from lakestream.spark.local_files import ensure_local_files

logger = logging.getLogger(__name__)

_SECONDS = 600
"""For the rehearsal and for the dump; some 40 s and 20 s on two idle cores."""

_FIRST = (
    NO_DEFAULTS,
    "spark-core",
    "scala-library",
    "aircompressor",
    "hudi-spark",
    "spark-catalyst",
    "spark-sql",
    "hadoop-client-api",
)
"""Most of what is asked for is in these: a JVM asks one jar after the other, of nearly 300, for each class that it has
not archived, and Spark for each function that it sends to tasks. But what takes another one's place comes before it."""


def class_path(jars: Path) -> str:
    """The jars of a folder: those of `_FIRST`, then all others by name. A wildcard would stand for them in the order of
    the file system, which is another one on another machine."""

    def place(jar: Path) -> tuple[int, str]:
        ranks = (rank for rank, name in enumerate(_FIRST) if jar.name.startswith(name))
        return next(ranks, len(_FIRST)), jar.name

    return os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar"), key=place))


def local_class_path() -> str:
    """What local mode runs on.

    Raises:
        JarsUnavailableError: as `ensure_jars`.
    """
    jars = ensure_jars()
    return os.pathsep.join((class_path(jars), str(ensure_local_files(jars))))


def local_archive() -> Path:
    """Where the archive for local mode is, if there is one.

    Raises:
        JarsUnavailableError, JavaNotFoundError: as told there.
    """
    return archive_of(local_class_path(), java_home(), jars_cache())


def image_archive() -> Path:
    """Where the archive is in an image, if there is one."""
    return spark_jars().parent / "classes.jsa"


def archive_of(classes: str, java: Path, cache: Path) -> Path:
    """Where the archive for a class path and a Java is, if there is one."""
    rehearsal = files("lakestream.spark").joinpath("rehearsal.py").read_text("utf-8")
    release = (java / "release").read_text("utf-8")
    name = hashlib.sha256("\n".join((classes, str(java), release, rehearsal)).encode()).hexdigest()[:12]
    return cache / f"{name}.jsa"


def archive_options(archive: Path) -> list[str]:
    """Options for a JVM to use an archive, which need not be there."""
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []


def ensure_archive() -> Path:
    """Make the archive for local mode, once; takes about a minute.

    Raises:
        JarsUnavailableError: the jars cannot be had, or the archive cannot be made of them.
    """
    cache, archive = jars_cache(), local_archive()
    with locked(cache / "lock"):
        if not archive.is_file():
            logger.info("making %s, with which Spark starts faster", archive)
            make_archive(archive, local_class_path(), java_home())
    return archive


def install_archive() -> None:
    """Make the archive of an image, whose jars are all among PySpark's own.

    Raises:
        JarsUnavailableError: as `make_archive`.
    """
    classes = class_path(spark_jars())
    (spark_jars().parent / "classpath").write_text(classes, "utf-8")
    make_archive(image_archive(), classes, java_home())


def make_archive(archive: Path, classes: str, java: Path) -> None:
    """Rehearse what a driver does, and archive the classes that it took.

    Raises:
        JarsUnavailableError: the rehearsal failed, or the dump.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        folder = Path(scratch)
        loaded, partial = folder / "loaded.classlist", folder / "partial.jsa"
        environment = dict(os.environ)
        take_local_environment(environment)
        environment["JAVA_HOME"] = str(java)
        rehearse = [sys.executable, "-m", "lakestream.spark.rehearsal", str(folder), classes, str(loaded)]
        run_java("the rehearsal for the archive of classes", rehearse, _SECONDS, environment)
        dump = [str(java / "bin" / "java"), "-Xshare:dump", f"-XX:SharedClassListFile={loaded}"]
        dump += [f"-XX:SharedArchiveFile={partial}", "-Xlog:cds=off", "-Xlog:cds+lambda=off", "-cp", classes]
        run_java("the dump for the archive of classes", dump, _SECONDS, environment)
        partial.rename(archive)


if __name__ == "__main__":
    install_archive()
