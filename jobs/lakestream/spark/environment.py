"""What Spark is told by the environment where it runs on this machine: itself, whatever a shell says of another one, or
of a Hadoop that is not here."""

import os
import pwd
import sys
from collections.abc import MutableMapping
from importlib.metadata import distribution
from pathlib import Path

import pyspark

from lakestream.errors import PermanentError
from lakestream.spark.java import java_home

DRIVER_MEMORY = "SPARK_DRIVER_MEMORY"
"""Heap of a JVM on this machine, as spark-submit knows it."""

_OF_OTHERS = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")


class LocalSparkError(PermanentError):
    """Spark cannot start where this process was started."""


def take_local_environment(environ: MutableMapping[str, str]) -> None:
    """Set variables for PySpark's launcher and its JVM, and remove those that are about others.

    Of another Spark: its place and settings, a master (`PYSPARK_SUBMIT_ARGS`), a server (`SPARK_REMOTE`), a JVM that is
    there. Of a Hadoop: settings (`HADOOP_CONF_DIR`) may ask for Kerberos, or have paths mean HDFS; tokens are of a job
    that may be over.

    Raises:
        JavaNotFoundError: as `java_home`.
        LocalSparkError: Python has found another PySpark than ours, or the JVM would find no user or folder.
    """
    home = Path(pyspark.__file__).parent
    _raise_if_unfit(home)
    for name in [name for name in environ if name.startswith(_OF_OTHERS) and name != DRIVER_MEMORY]:
        del environ[name]
    environ.update(
        {
            # bin/java is looked up by PySpark's launcher script, which only heeds the environment.
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(home / "conf"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    )
    if sys.flags.utf8_mode:
        # In a locale of ASCII (LC_ALL=C) Python has the names of files in UTF-8 all the same. A JVM would make a
        # question mark of each letter that it lacks, and one partition of two.
        environ["LC_ALL"] = "C.UTF-8"


def _raise_if_unfit(home: Path) -> None:
    """Raise for what would be a Java stack trace otherwise."""
    installed = Path(str(distribution("pyspark").locate_file("pyspark")))
    if home.resolve() != installed.resolve():
        raise LocalSparkError(
            f"Python has found the PySpark in {home} before the one that was installed with this, in {installed}: "
            "leave it out of PYTHONPATH"
        )
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise LocalSparkError(
            f"Hadoop asks for the name of the user, and user {os.geteuid()} has none on this machine: "
            "add a line for it to /etc/passwd, or start this as a user that has one"
        ) from None
    try:
        os.getcwd()
    except FileNotFoundError:
        raise LocalSparkError(
            "the folder that this was started in is not there any more, and no JVM starts in it: change to another one"
        ) from None
