"""Names of places: what somebody types, and what `lakestream files` prints; and how S3 is reached."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pytest
from botocore.exceptions import UnauthorizedSSOTokenError
from obstore.exceptions import GenericError
from obstore.store import S3Store
from werkzeug.serving import make_server

from aws_credentials import Giver, take_away
from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.storage import Folder, below

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class EmptyS3:
    """Its buckets have no objects; it notes who asks, and may answer with an error."""

    def __init__(self) -> None:
        self.asked_by: list[str] = []
        self.error = b""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        self.asked_by.append(environ["HTTP_AUTHORIZATION"])
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if self.error:
            start_response("403 Forbidden", [])
            return [self.error]
        start_response("200 OK", [])
        return [b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmptyS3]:
    s3 = EmptyS3()
    server = make_server("127.0.0.1", 0, s3)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    yield s3
    server.shutdown()
    thread.join()
    server.server_close()


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


def test_a_profile_alone_signs_with_its_key_and_region(
    s3: EmptyS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_away(monkeypatch, tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    profile = tmp_path / "credentials"
    profile.write_text("[laptop]\naws_access_key_id = of-laptop\naws_secret_access_key = x\nregion = eu-west-3\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_PROFILE", "laptop")
    assert Folder("s3://lake/_ledger").names() == []
    (asked_by,) = s3.asked_by
    key, _, region, *_ = asked_by.partition("Credential=")[2].split("/")
    assert (key, region) == ("of-laptop", "eu-west-3")


def test_credentials_are_asked_for_again_before_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore's live for ten minutes more."""
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: Giver())
    store: Any = Folder("s3://lake/_ledger")._store
    first, second = store.credential_provider(), store.credential_provider()
    assert first["access_key_id"] != second["access_key_id"]
    assert second["expires_at"] < datetime.now(UTC) + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("profile", "told"), [("", "no AWS credentials: set AWS_ACCESS_KEY_ID"), ("oders", "The config profile .oders.")]
)
def test_without_credentials_it_is_told_what_to_set(
    profile: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_away(monkeypatch, tmp_path)
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)
    with pytest.raises(LakeError, match=f"s3://lake/_ledger: .*{told}"):
        Folder("s3://lake/_ledger")


def test_a_login_that_has_expired_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: Giver(UnauthorizedSSOTokenError()))
    with pytest.raises(LakeError, match=r"s3://lake/_ledger: .*run aws sso login with the corresponding profile\.$"):
        Folder("s3://lake/_ledger")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<?xml?>\n<Error>\n<Code>AccessDenied</Code>\n<Message>not you</Message></Error>", "AccessDenied: not you"),
        (b"<?xml?>\n<Error><Code>AccessDenied</Code></Error>", "AccessDenied"),
        (b"who are you?", "who are you?"),
    ],
    ids=["message", "code", "text"],
)
@pytest.mark.parametrize(
    "ask",
    [Folder.names, lambda folder: folder.read("a"), lambda folder: folder.add("a", b"1")],
    ids=["list", "read", "add"],
)
def test_what_s3_says_is_told_in_a_line(s3: EmptyS3, answer: bytes, said: str, ask: Callable[[Folder], object]) -> None:
    """obstore adds what is behind it in the words of Rust, in 24 lines and more."""
    s3.error = answer
    with pytest.raises(LakeError, match=f"^s3://lake/_ledger.* 403 Forbidden: {re.escape(said)}$") as caught:
        ask(Folder("s3://lake/_ledger"))
    assert "\n" not in str(caught.value)
    assert "Debug source" not in str(caught.value)


def test_a_server_that_is_away_is_told_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    error = GenericError(
        'GET /x: error sending request\n\nDebug source:\nOs {\n message: "Connection refused",\n },\n}'
    )
    monkeypatch.setattr(obstore, "head", partial(_fail, error))
    with pytest.raises(
        LakeError, match=r"^s3://lake/_ledger/x cannot be .*: error sending request: Connection refused$"
    ):
        Folder("s3://lake/_ledger").has("x")


def _fail(error: Exception, *_: object) -> None:
    raise error
