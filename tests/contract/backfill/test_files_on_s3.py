"""What files a path of S3 means: folders are objects there, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from moto_s3 import moto_s3, s3_client

from lakestream.backfill.find import find_files
from lakestream.errors import LakeStreamError
from lakestream.storage import LakePath, S3Settings, StoreSettings

Found = Callable[[str], list[str]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """Paths below one; each folder has the object that S3's console and Hadoop make for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto_s3("lake") as url:
        client = s3_client(url)
        for key in (
            *("hudi/", "hudi/.hoodie/", "hudi/.hoodie/hoodie.properties", "hudi/dt=1/", "hudi/dt=1/a.parquet"),
            *("json/", "json/_lakestream/", "json/_lakestream/owner", "json/dt=1/", "json/dt=1/a.json"),
            *("files/", "files/2025/", "files/2025/a.json"),
        ):
            client.put_object(Bucket="lake", Key=key, Body=b"" if key.endswith("/") else b"{}")
        s3 = S3Settings("us-east-1", url)

        def find(path: str) -> list[str]:
            place = StoreSettings(LakePath.parse(f"s3://lake/{path}"), s3)
            return [one.path for one in find_files(place, LakePath.parse("/elsewhere")) if one.size]

        yield find


def test_a_table_is_one_though_its_folder_is_an_object(found: Found) -> None:
    for path in ("hudi", "hudi/dt=1", "hudi/dt=1/a.parquet"):
        with pytest.raises(LakeStreamError, match="s3a://lake/hudi is a Hudi table"):
            found(path)
    for path in ("json", "json/dt=1"):
        with pytest.raises(LakeStreamError, match="s3a://lake/json/_lakestream/owner"):
            found(path)


def test_the_object_of_a_folder_is_no_file(found: Found) -> None:
    for path in ("files", "files/", "files/2025", "files/2025/a.json"):
        assert found(path) == ["s3a://lake/files/2025/a.json"]
