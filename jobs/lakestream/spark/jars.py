"""The jars that Spark runs on, in one folder of a cache that all applications and checkouts share.

Those of `ivy.xml`, resolved once with the Ivy that Spark ships; PySpark's own, but for its Hadoop, whose place is
taken; and one that keeps some of Hadoop's defaults away. `<cache>/<fingerprint>/*.jar` is there in whole or not at all:
it is filled under another name and renamed.

In an image there is no need for a cache: `python -m lakestream.spark.jars` puts the jars among those of PySpark.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pyspark

from lakestream.errors import RetryLaterError
from lakestream.spark.java import java_home

_RESOLVE_TIMEOUT_SECONDS = 900
"""140 MB in some 40 jars; one minute over a good connection."""


NO_DEFAULTS = "empty-hadoop-defaults.jar"
"""Comes before Hadoop's own jars on the class path."""
_EMPTY = dict.fromkeys(("mapred-default.xml", "yarn-default.xml"), "<configuration/>")
"""Neither runs here, and theirs are two thirds of the Hadoop configuration that Hudi sends along with each stage, and
that each of its tasks reads."""


class JarsUnavailableError(RetryLaterError):
    """The jars that Spark needs could not be resolved; nothing was left behind, so that it can be tried again."""


def jars_cache(env: Mapping[str, str] = os.environ) -> Path:
    """`$LAKESTREAM_JARS`, else `lakestream/jars` in the user's cache folder."""
    if configured := env.get("LAKESTREAM_JARS"):
        return Path(configured)
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path.home() / ".cache"
    return base / "lakestream" / "jars"


def ensure_jars(cache: Path | None = None) -> Path:
    """The folder with all jars; resolves them first if they are not there (needs a Maven repository).

    Safe when several processes do it at once: one resolves, the others wait for it.

    Raises:
        JarsUnavailableError: the resolver failed; the message carries the end of its output.
    """
    cache = cache or jars_cache()
    ivy_file = files("lakestream.spark").joinpath("ivy.xml").read_bytes()
    made_of = ivy_file + pyspark.__version__.encode() + repr(sorted(_EMPTY.items())).encode()
    folder = cache / hashlib.sha256(made_of).hexdigest()[:12]
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock"):
        # Another process may have done it while this one waited.
        if not folder.is_dir():
            _resolve(cache, ivy_file, folder)
    return folder


def _resolve(cache: Path, ivy_file: bytes, folder: Path) -> None:
    # Downloads stay in Ivy's own cache until all are there, so that a second try goes on where the first one broke.
    ivy_cache, partial = cache / "ivy", cache / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (cache / "ivy.xml").write_bytes(ivy_file)
    command = [
        str(java_home() / "bin" / "java"),
        *("-cp", str(_spark_ivy())),
        "org.apache.ivy.Main",
        *("-ivy", str(cache / "ivy.xml")),
        *("-cache", str(ivy_cache)),
        *("-confs", "default"),
        *("-retrieve", f"{partial}/[artifact]-[revision].[ext]"),
        "-warn",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise JarsUnavailableError(
            f"resolving the jars took over {_RESOLVE_TIMEOUT_SECONDS} s; try again, it goes on where it stopped"
        ) from error
    if done.returncode != 0 or not any(partial.glob("*.jar")):
        output = (done.stdout + done.stderr)[-2000:]
        raise JarsUnavailableError(f"Ivy could not resolve the jars into {cache}:\n{output}")
    for jar in spark_jars().glob("*.jar"):
        if not jar.name.startswith("hadoop-client-"):
            _link(jar, partial / jar.name)
    with zipfile.ZipFile(partial / NO_DEFAULTS, "w") as archive:
        for name, content in _EMPTY.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    partial.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _link(jar: Path, to: Path) -> None:
    """The same file under another name; a copy, if that is on another file system."""
    try:
        to.hardlink_to(jar)
    except OSError:
        shutil.copy2(jar, to)


def install_jars(folder: Path) -> None:
    """Make a folder, PySpark's own, one of just these jars.

    Raises:
        JarsUnavailableError: as `ensure_jars`.
    """
    with tempfile.TemporaryDirectory() as cache:
        jars = {jar.name: jar for jar in ensure_jars(Path(cache)).glob("*.jar")}
        for jar in folder.glob("*.jar"):
            if jar.name not in jars:
                jar.unlink()
        for name in jars.keys() - {jar.name for jar in folder.glob("*.jar")}:
            shutil.copyfile(jars[name], folder / name)


def spark_jars() -> Path:
    """The folder of PySpark's own jars."""
    return Path(pyspark.__file__).parent / "jars"


def run_java(what: str, command: Iterable[str], seconds: float, environment: Mapping[str, str] | None = None) -> str:
    """Run one of the programs that make something of the jars; what it prints.

    Raises:
        JarsUnavailableError: it took longer, or failed; the message carries the end of its output.
    """
    try:
        done = subprocess.run(
            [*command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JarsUnavailableError(f"{what} took over {seconds} s") from error
    if done.returncode != 0:
        raise JarsUnavailableError(f"{what} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def _spark_ivy() -> Path:
    return next(spark_jars().glob("ivy-*.jar"))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Of several processes one at a time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also when the process dies
        yield


if __name__ == "__main__":
    install_jars(spark_jars())
