"""Which of Hadoop's properties nobody asks for."""

from __future__ import annotations

from lakestream.spark.hadoop import unused


def test_defaults_of_yarn_and_mapreduce_are_not_used_and_what_was_set_stays() -> None:
    found = [
        {"key": "yarn.resourcemanager.address", "value": "", "isFinal": False, "resource": "yarn-default.xml"},
        {"key": "yarn.log-aggregation-enable", "value": "true", "isFinal": False, "resource": "programmatic"},
        {"key": "mapreduce.job.reduces", "value": "1", "isFinal": False, "resource": "mapred-default.xml"},
        {"key": "mapreduce.outputcommitter.factory.scheme.s3a", "value": "", "resource": "mapred-default.xml"},
        {"key": "fs.s3a.impl", "value": "", "isFinal": False, "resource": "core-default.xml"},
    ]
    assert unused(found) == ["yarn.resourcemanager.address", "mapreduce.job.reduces"]
