"""What attempts at a batch have left in one folder, on a folder and on S3, which lists keys in their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from moto_s3 import moto_s3

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import objects_of, put_all, remove
from lakestream.storage import LakePath, S3Settings, StoreSettings, open_store

REF = BatchRef(12, "5e0c11aa-1111-4222-8333-444455556666")
OWN = ["b000000000012-00000-5e0c11aa.parquet", "b000000000012-00011-5e0c11aa-0badcafe.parquet"]
OTHERS = [
    "b000000000011-00000-5e0c11aa.parquet",
    "b000000000012-00000-ffffffff.parquet",
    *map("b{:012d}-0".format, [13, 120]),
]


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreSettings]:
    if request.param == "folder":
        yield StoreSettings(LakePath.parse(f"{tmp_path}/quarantine"), S3Settings("eu-west-1"))
        return
    with moto_s3("lake") as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield StoreSettings(LakePath.parse("s3a://lake/quarantine"), S3Settings(region="us-east-1", endpoint=url))


def test_it_is_found_among_others_and_removed(place: StoreSettings) -> None:
    assert objects_of(place, REF) == []
    put_all(place, dict.fromkeys([*OWN, *OTHERS], b"content"))
    assert objects_of(place, REF) == OWN
    remove(place, [*OWN, "b000000000012-00099-5e0c11aa.parquet"])
    assert objects_of(place, REF) == []
    left = [meta["path"] for page in obstore.list(open_store(place)) for meta in page]
    assert sorted(left) == sorted(OTHERS)
