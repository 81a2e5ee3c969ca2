"""A Hive metastore on Derby, in a JVM of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engines.fetch import fetched
from lakestream.spark.jars import ensure_jars
from lakestream.spark.java import java_home
from lakestream_demo.loopback import free_port

_LOG4J = """
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n
logger.audit.name = org.apache.hadoop.hive.metastore.HiveMetaStore.audit
logger.audit.level = info
"""
_CALL = re.compile(r"HiveMetaStore\.audit: .*\bcmd=(?:source:\S+ )?(\w+)")


class Metastore:
    """A metastore that can be killed and started again, at the same port and with the same tables."""

    def __init__(self, folder: Path, release: str, hadoop: Mapping[str, str]) -> None:
        """Not started yet.

        Args:
            folder: of its database and its log.
            release: of Hive: that of Spark's jars, 2.3.9, or 3.1.3, which has to be fetched.
            hadoop: configuration, as that of S3A.
        """
        self.release = release
        self._folder = folder
        self._classes = _classes(release)
        self._hadoop = dict(hadoop)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        (folder / "log4j2.properties").write_text(_LOG4J, "utf-8")

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        conf = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self._folder}/db;create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"file://{self._folder}/warehouse",
            # Of release 3, which looks for classes of Hive's own otherwise.
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            **self._hadoop,
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(java_home() / "bin" / "java"),
                    *("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    f"-Dlog4j2.configurationFile=file:{self._folder}/log4j2.properties",
                    # Else it takes a file of its own instead, and writes into /tmp.
                    f"-Dhive.log4j.file={self._folder}/log4j2.properties",
                    # Else a call may be answered before it is in the log.
                    "-Dhive.async.log.enabled=false",
                    f"-Dderby.stream.error.file={self._folder}/derby.log",
                    *("-cp", self._classes),
                    "org.apache.hadoop.hive.metastore.HiveMetaStore",
                    *("-p", str(self.port)),
                    *(f"--hiveconf={name}={value}" for name, value in conf.items()),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
            )
        deadline = time.monotonic() + 120
        while True:
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, self.log()[-3000:]
            assert time.monotonic() < deadline, self.log()[-3000:]
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def asked(self, spark: SparkSession) -> Iterator[Any]:
        """A HiveMetaStoreClient, as anybody may have one."""
        jvm: Any = spark._jvm
        conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
        conf.set("hive.metastore.uris", self.uri)
        client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)
        try:
            yield client
        finally:
            client.close()

    def log(self) -> str:
        return (self._folder / "log").read_text("utf-8", errors="replace")

    def calls(self) -> list[str]:
        """What it was asked since it was first started, in order."""
        return _CALL.findall(self.log())


def _classes(release: str) -> str:
    """What Spark brings along is a whole metastore, and what that of release 3 needs."""
    spark = f"{ensure_jars()}/*"
    if release == "2.3.9":
        return spark
    ours = fetched("org.apache.hive", "hive-standalone-metastore", release)
    return f"{ours}:{fetched('com.google.guava', 'guava', '19.0')}:{spark}"


@contextmanager
def running(folder: Path, release: str, hadoop: Mapping[str, str]) -> Iterator[Metastore]:
    metastore = Metastore(folder, release, hadoop)
    metastore.start()
    try:
        yield metastore
    finally:
        metastore.kill()
