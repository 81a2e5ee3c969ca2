"""Hadoop's configuration, without what no file system and no format asks it for.

Hudi hands all of it to each task and each function of its jobs, property by property, which tells in small commits
of a young JVM. Two thirds are defaults of YARN and MapReduce.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNUSED = frozenset({"yarn-default.xml", "mapred-default.xml"})
_USED = ("mapreduce.outputcommitter.", "mapreduce.fileoutputcommitter.", "mapreduce.input.", "mapreduce.output.")


def drop_unused_defaults(spark: SparkSession) -> None:
    """Take defaults that nobody asks for out of the configuration that all others are copies of."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop
    conf: Any = spark._jsc.hadoopConfiguration()
    # Both add files of defaults, and with each all configurations are read anew, with what was taken out of them.
    hadoop.fs.FileSystem.getFileSystemClass("file", conf)
    jvm.java.lang.Class.forName("org.apache.hadoop.mapred.JobConf")
    content = jvm.java.io.StringWriter()
    hadoop.conf.Configuration.dumpConfiguration(conf, content)
    for name in unused(json.loads(content.toString())["properties"]):
        conf.unset(name)


def unused(properties: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of defaults that nobody asks for; whatever somebody has set stays.

    Args:
        properties: as Hadoop tells them, each with the `resource` that its value is from.
    """
    return [one["key"] for one in properties if one["resource"] in _UNUSED and not one["key"].startswith(_USED)]
