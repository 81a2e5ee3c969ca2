"""Names of places: what somebody types, and what `lakestream files` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import S3Store

from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.storage import Folder, below


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize(
    ("location", "prefix"),
    [
        ("s3://lake/ledger", "ledger"),
        ("S3a://lake/ledger/", "ledger"),
        ("s3://lake", None),
        # Cut off there, the ledgers of all runs were in one place.
        ("s3://lake/run#1", "run#1"),
        ("s3://lake/run?1/ledger", "run?1/ledger"),
        ("s3://lake/a%20b", "a%20b"),
    ],
)
def test_a_prefix_is_what_follows_the_bucket(location: str, prefix: str | None) -> None:
    assert Folder(location)._store.prefix == prefix


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_folder_may_have_any_name(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "run #1?"
    folder.mkdir()
    (folder / "a.json").write_text("1")
    place = Folder(form.format(folder))
    assert place.names() == ["a.json"]
    assert place.read("a.json") == b"1"


def test_a_colon_makes_no_scheme_of_a_folders_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run:1").mkdir()
    assert Folder("run:1").names() == []


@pytest.mark.parametrize("location", ["s3://lake/a//b", "gs://lake/a", "run:/1"])
def test_what_is_no_place_is_said(location: str) -> None:
    with pytest.raises(LakeError, match=location):
        Folder(location)


@pytest.mark.parametrize(
    ("location", "path", "relative"),
    [
        ("s3://lake/run#1", "s3a://lake/run#1/dt=1/a.json", "dt=1/a.json"),
        ("s3://lake/x/", "s3a://lake/x/kind=who?#2/a.json", "kind=who?#2/a.json"),
        ("/lake/x", "file:///lake/x/a#1.json", "a#1.json"),
        ("/lake/x", "dt=1/a.json", "dt=1/a.json"),
    ],
)
def test_a_listed_file_is_found_below_its_place(location: str, path: str, relative: str) -> None:
    assert below(location, path) == relative


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
