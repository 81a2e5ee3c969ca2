"""What Hadoop asks of S3 as the jobs have it configured."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakestream.spark.session import s3a_conf
from lakestream_bench._counting_s3 import counting_s3

pytestmark = pytest.mark.spark


def test_to_write_a_file_is_one_request(spark: SparkSession) -> None:
    jvm = spark._jvm
    with counting_s3() as s3:
        conf = jvm.org.apache.hadoop.conf.Configuration()
        for key, value in s3a_conf(s3.settings).items():
            conf.set(key.removeprefix("spark.hadoop."), value)
        conf.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")
        conf.set("fs.s3a.access.key", "test")
        conf.set("fs.s3a.secret.key", "test")
        files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(jvm.java.net.URI(s3.lake), conf)
        try:
            s3.counted.take()
            for overwrites in (False, True):
                files.create(jvm.org.apache.hadoop.fs.Path(f"{s3.lake}/orders/{overwrites}"), overwrites).close()
            assert s3.counted.take() == {"PUT": 2}
            # Nor is it asked whether the folder that it was in is to be kept.
            files.delete(jvm.org.apache.hadoop.fs.Path(f"{s3.lake}/orders/True"), False)
            assert "PUT" not in s3.counted.take()
        finally:
            files.close()
