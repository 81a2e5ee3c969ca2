"""The jars of `ivy.xml`, resolved once with the Ivy that Spark ships, into a cache that all applications share.

`<cache>/<fingerprint of ivy.xml>/*.jar` is there in whole or not at all: it is filled under another name and renamed.

In an image there is no need for a cache: `python -m lakestream.spark.jars` puts the jars among those of PySpark.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pyspark

from lakestream.errors import RetryLaterError
from lakestream.spark.java import java_home

_RESOLVE_TIMEOUT_SECONDS = 900
"""140 MB in some 40 jars; one minute over a good connection."""


class JarsUnavailableError(RetryLaterError):
    """The jars that Spark needs could not be resolved; nothing was left behind, so that it can be tried again."""


def jars_cache(env: Mapping[str, str] = os.environ) -> Path:
    """`$LAKESTREAM_JARS`, else `lakestream/jars` in the user's cache folder."""
    if configured := env.get("LAKESTREAM_JARS"):
        return Path(configured)
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path.home() / ".cache"
    return base / "lakestream" / "jars"


def ensure_jars(cache: Path | None = None) -> Path:
    """The folder with the pinned jars; resolves them first if they are not there (needs a Maven repository).

    Safe when several processes do it at once: one resolves, the others wait for it.

    Raises:
        JarsUnavailableError: the resolver failed; the message carries the end of its output.
    """
    cache = cache or jars_cache()
    ivy_file = files("lakestream.spark").joinpath("ivy.xml").read_bytes()
    folder = cache / hashlib.sha256(ivy_file).hexdigest()[:12]
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "lock"):
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
    partial.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)


def install_jars(spark_jars: Path) -> None:
    """Put the pinned jars among PySpark's own, and its Hadoop away: two of them would be on one class path.

    Raises:
        JarsUnavailableError: as `ensure_jars`.
    """
    with tempfile.TemporaryDirectory() as cache:
        pinned = list(ensure_jars(Path(cache)).glob("*.jar"))
        for jar in spark_jars.glob("hadoop-client-*.jar"):
            jar.unlink()
        for jar in pinned:
            shutil.copyfile(jar, spark_jars / jar.name)


def _spark_jars() -> Path:
    return Path(pyspark.__file__).parent / "jars"


def _spark_ivy() -> Path:
    return next(_spark_jars().glob("ivy-*.jar"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also when the process dies
        yield


if __name__ == "__main__":
    install_jars(_spark_jars())
