"""Uploads that a kill left unfinished."""

from __future__ import annotations

from typing import Any

import pytest
from moto_s3 import s3_client
from pyspark.sql import SparkSession

from lakestream.spark.uploads import abort_uploads
from lakestream.storage import LakePath

pytestmark = pytest.mark.spark

BUCKET = "leftover-uploads"


@pytest.fixture
def client(s3: str) -> Any:
    made = s3_client(s3)
    made.create_bucket(Bucket=BUCKET)
    return made


def unfinished(client: Any) -> set[str]:
    return {upload["Key"] for upload in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ())}


def test_uploads_below_a_table_are_aborted_and_no_others(
    spark_on_s3: SparkSession, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("uploads/orders/dt=1/a.parquet", "uploads/orders/b", "uploads/orders_json/c", "uploads/other"):
        upload = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        client.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=1, Body=b"part")
    client.put_object(Bucket=BUCKET, Key="uploads/orders/whole", Body=b"object")
    paths = [
        LakePath.parse(path) for path in (f"s3://{BUCKET}/uploads/orders", "/tmp/orders", "s3a://no-such-bucket/a")
    ]
    assert abort_uploads(spark_on_s3, paths) == 2
    assert unfinished(client) == {"uploads/orders_json/c", "uploads/other"}
    assert client.get_object(Bucket=BUCKET, Key="uploads/orders/whole")["Body"].read() == b"object"
    assert "unfinished uploads below s3a://no-such-bucket/a stay" in caplog.text
