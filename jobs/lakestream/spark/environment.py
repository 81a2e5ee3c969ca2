"""What Spark is told by the environment where it runs on this machine: itself, whatever a shell says of another one."""

import sys
from pathlib import Path

import pyspark

from lakestream.spark.java import java_home


def local_environment() -> dict[str, str]:
    """Variables for PySpark's launcher and its JVM, in place of those that are there.

    Raises:
        JavaNotFoundError: as `java_home`.
    """
    home = Path(pyspark.__file__).parent
    variables = {
        # bin/java is looked up by PySpark's launcher script, which only heeds the environment.
        "JAVA_HOME": str(java_home()),
        # Of another version, and with settings of a cluster's, where somebody works with Spark already.
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    if sys.flags.utf8_mode:
        # In a locale of ASCII (LC_ALL=C) Python has the names of files in UTF-8 all the same. A JVM would make a
        # question mark of each letter that it lacks, and one partition of two.
        variables["LC_ALL"] = "C.UTF-8"
    return variables
