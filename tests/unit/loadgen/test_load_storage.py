"""Where ledgers and tables are looked for."""

from __future__ import annotations

import pytest
from obstore.store import S3Store

from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.storage import Folder


@pytest.mark.parametrize(
    "endpoint", ["s3:7070", "http://s3:7070\n", "http://s3:70700", "http://s3:port", "http://my s3"]
)
def test_an_endpoint_that_is_none_is_told(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    with pytest.raises(LakeError, match=r"AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is '.*', which is not an endpoint"):
        Folder("s3://lake/_ledger")


@pytest.mark.parametrize(("general", "endpoint"), [("", None), ("http://127.0.0.1:9/", "http://127.0.0.1:9/")])
def test_an_empty_endpoint_is_none(general: str, endpoint: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")
    monkeypatch.setenv("AWS_ENDPOINT_URL", general)
    store = Folder("s3://lake/_ledger")._store
    assert isinstance(store, S3Store)
    assert store.config.get("endpoint") == endpoint
