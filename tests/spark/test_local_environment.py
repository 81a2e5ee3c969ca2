"""Local Spark is ours, and the same, whatever the shell says that it is started from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

MAKE_TWO = """
import sys
from lakestream.spark.session import SessionSettings, build_session
spark = build_session(SessionSettings("names", cores=1))
files = spark._jvm.org.apache.hadoop.fs
for name in ("dt=ä", "dt=ö"):
    path = files.Path(f"{sys.argv[1]}/{name}/new")
    path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path).close()
"""
ASK_A_WORKER = """
import sys
from lakestream.spark.session import SessionSettings, build_session
spark = build_session(SessionSettings("worker", cores=1))
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
assert spark.conf.get("spark.app.id").startswith("local-")
print(spark.sparkContext.parallelize([1], 1).map(lambda _: sys.executable).collect()[0])
"""
OF_A_CLUSTER = """
<configuration>
<property><name>fs.defaultFS</name><value>hdfs://namenode:8020</value></property>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
</configuration>
"""


def run(program: str, *arguments: str, **variables: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_names_are_in_utf_8_in_a_locale_of_ascii(tmp_path: Path) -> None:
    """As when something is run by cron: two partitions were one, `dt=?`."""
    run(MAKE_TWO, str(tmp_path), LC_ALL="C")
    assert {path.name for path in tmp_path.iterdir()} == {"dt=ä", "dt=ö"}


def test_another_spark_or_hadoop_of_the_shells_is_not_used(tmp_path: Path) -> None:
    """As where somebody works with Spark on a cluster, or in a notebook."""
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\nspark.jars.packages com.example:nothing:1.0\n")
    (tmp_path / "file").touch()
    (tmp_path / "core-site.xml").write_text(OF_A_CLUSTER)
    others = {
        "HADOOP_CONF_DIR": str(tmp_path),
        "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens"),
        "HADOOP_USER_NAME": "hdfs",
        "YARN_CONF_DIR": str(tmp_path),
        "SPARK_HOME": "/opt/spark",
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_LOCAL_DIRS": str(tmp_path / "file"),
        "SPARK_REMOTE": "sc://127.0.0.1:15002",
        "PYSPARK_PYTHON": "/bin/false",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "PYSPARK_GATEWAY_PORT": "1",
        "PYSPARK_GATEWAY_SECRET": "none",
    }
    assert run(ASK_A_WORKER, **others) == sys.executable
