"""The places a log can be in: a folder, memory, and S3 by moto over a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from moto_s3 import moto_s3
from obstore.store import MemoryStore

from lakestream.log import LogStore, ObstoreLogStore
from lakestream.storage import LakePath, S3Settings, StoreSettings, open_store


@pytest.fixture(scope="session")
def s3(monkeypatch_session: pytest.MonkeyPatch) -> Iterator[S3Settings]:
    with moto_s3("lake") as url:
        yield S3Settings(region="us-east-1", endpoint=url)


@pytest.fixture(scope="session")
def monkeypatch_session() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield patch


@pytest.fixture(params=["folder", "memory", "s3"])
def open_same(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], LogStore]:
    """Opens one place, empty at first; each call is another driver's handle on it."""
    if request.param == "memory":
        memory = MemoryStore()
        return lambda: ObstoreLogStore(memory)
    if request.param == "folder":
        settings = StoreSettings(LakePath.parse(f"{tmp_path}/check points/hudi"), S3Settings("eu-west-1"))
    else:
        s3_settings: S3Settings = request.getfixturevalue("s3")
        settings = StoreSettings(LakePath.parse(f"s3a://lake/{uuid4()}/check points/hudi"), s3_settings)
    # Not the cached store: another process has connections of its own.
    return lambda: ObstoreLogStore(open_store.__wrapped__(settings))


@pytest.fixture
def store(open_same: Callable[[], LogStore]) -> LogStore:
    return open_same()
