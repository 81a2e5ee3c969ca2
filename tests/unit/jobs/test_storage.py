"""Paths of a lake, and what reaches obstore of them."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError, EndpointConnectionError
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, S3Store
from werkzeug.serving import make_server

from aws_credentials import Giver, take_away
from lakestream.errors import AccessDeniedError
from lakestream.storage import (
    LakePath,
    S3Settings,
    Scheme,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
    StoreSettings,
    exists,
    open_store,
    translated,
)

AWS = S3Settings("eu-west-1")


@pytest.mark.parametrize(
    ("text", "path", "uri"),
    [
        ("/lake/orders/", LakePath(Scheme.FOLDER, "", "lake/orders"), "file:///lake/orders"),
        ("file:///lake/my orders", LakePath(Scheme.FOLDER, "", "lake/my orders"), "file:///lake/my orders"),
        ("s3://lake/a/b", LakePath(Scheme.S3, "lake", "a/b"), "s3a://lake/a/b"),
        ("s3a://lake/a/b/", LakePath(Scheme.S3, "lake", "a/b"), "s3a://lake/a/b"),
        ("s3a://lake", LakePath(Scheme.S3, "lake", ""), "s3a://lake"),
        ("s3a://My_lake.old-1/a", LakePath(Scheme.S3, "My_lake.old-1", "a"), "s3a://My_lake.old-1/a"),
    ],
)
def test_paths(text: str, path: LakePath, uri: str) -> None:
    assert LakePath.parse(text) == path
    assert path.uri == uri
    assert LakePath.parse(uri) == path
    assert LakePath.parse(str(path)) == path


def test_a_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(LakePath.parse("out/../lake")) == f"{tmp_path}/lake"


def test_a_path_below_another() -> None:
    assert (LakePath.parse("s3a://lake") / "hudi").uri == "s3a://lake/hudi"
    assert str(LakePath.parse("/lake") / "a/b") == "/lake/a/b"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("gs://lake/orders", "scheme 'gs' is not supported"),
        ("s3a:///orders", "has no bucket"),
        ("file://host/orders", "three slashes"),
        ("file:/orders", "is no path"),
        ("", "is no path"),
        ("s3a://lake/a//b", "segments"),
        ("s3a://lake/../b", "segments"),
        ("/lake/\udcff", "not UTF-8"),
        ("s3://lake/orders\t", "control character"),
        ("s3a://lake/a\nb", "control character"),
        ("/lake/a\0b", "control character"),
        ("s3://my lake/orders", "names no bucket: 'my lake' has more than letters"),
        ("s3://lake#x/orders", "names no bucket"),
        ("s3://../orders", "names no bucket"),
    ],
)
def test_bad_paths_are_quoted_with_what_to_do(text: str, what: str) -> None:
    with pytest.raises(StorageError, match=what) as caught:
        LakePath.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "settings"),
    [
        ({}, S3Settings("eu-west-1", None)),
        ({"AWS_ENDPOINT_URL": "http://any", "AWS_ENDPOINT_URL_S3": "http://s3"}, S3Settings("eu-west-1", "http://s3")),
        ({"AWS_ENDPOINT_URL": "http://any"}, S3Settings("eu-west-1", "http://any")),
        ({"AWS_ENDPOINT_URL_S3": ""}, S3Settings("eu-west-1", None)),
        ({"AWS_DEFAULT_REGION": "us-east-2"}, S3Settings("us-east-2", None)),
        ({"AWS_DEFAULT_REGION": "us-east-2", "AWS_REGION": "us-west-1"}, S3Settings("us-west-1", None)),
    ],
)
def test_the_environment_says_where_s3_is(environ: dict[str, str], settings: S3Settings) -> None:
    assert S3Settings.from_environment(environ, "eu-west-1") == settings


def test_settings_cross_to_an_executor_and_open_there(tmp_path: Path) -> None:
    settings = StoreSettings(LakePath.parse(str(tmp_path)) / "not yet there", AWS)
    received = pickle.loads(pickle.dumps(settings))
    assert received == settings
    store = open_store(received)
    assert isinstance(store, LocalStore)
    assert (tmp_path / "not yet there").is_dir()
    assert open_store(settings) is store  # one connection pool per process


def test_s3_is_opened_with_the_endpoint_in_path_style(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    settings = StoreSettings(LakePath.parse("s3a://lake/orders"), S3Settings("eu-west-1", "http://127.0.0.1:9"))
    store = open_store(settings)
    assert isinstance(store, S3Store)
    assert store.prefix == "orders"
    assert store.config["endpoint"] == "http://127.0.0.1:9"
    assert store.config["region"] == "eu-west-1"
    assert store.client_options is not None
    assert store.client_options["allow_http"] in (True, "true")


@pytest.mark.parametrize(
    "endpoint", ["s3:7070", "http://s3:7070\n", "http://s3:70700", "http://s3:port", "http://my s3"]
)
def test_an_endpoint_that_is_none_is_told(endpoint: str) -> None:
    settings = StoreSettings(LakePath.parse("s3a://lake/orders"), S3Settings("eu-west-1", endpoint))
    with pytest.raises(StorageError, match=r"AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is '.*', which is not an"):
        open_store(settings)


@pytest.mark.parametrize("region", ["eu-west-1\n", "eu-west-1 ", "eu west", "\u20ac"])
def test_a_region_that_is_none_is_told(region: str) -> None:
    """As of a Secret that `echo` made: obstore panics, by what is no Exception."""
    settings = StoreSettings(LakePath.parse("s3a://lake/orders"), S3Settings(region))
    with pytest.raises(StorageError, match=r"AWS_REGION or AWS_DEFAULT_REGION is '.*', which is no region"):
        open_store(settings)


def test_time_alone_ends_the_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused at once, ten of them take less than ten seconds."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    place = StoreSettings(LakePath.parse("s3a://lake/t"), S3Settings("eu-west-1"), patience=timedelta(minutes=3))
    store = open_store(place)
    assert isinstance(store, S3Store)
    assert store.retry_config is not None
    assert store.retry_config["retry_timeout"] == place.patience
    assert store.retry_config["max_retries"] * store.retry_config["backoff"]["init_backoff"] > place.patience


def test_an_empty_endpoint_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    settings = S3Settings.from_environment({"AWS_ENDPOINT_URL_S3": ""}, "eu-west-1")
    store = open_store(StoreSettings(LakePath.parse("s3a://empty"), settings))
    assert isinstance(store, S3Store)
    # With an empty one it would panic in place of this, and without any ask AWS.
    with pytest.raises(StorageUnavailableError, match=r"http://127.0.0.1:9/empty"), translated("look"):
        obstore.head(store, "x")


def test_without_credentials_the_message_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(StorageError, match="AWS_ACCESS_KEY_ID"):
        open_store(StoreSettings(LakePath.parse("s3a://elsewhere"), AWS))


def test_a_profile_that_is_not_there_is_told_as_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    take_away(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_PROFILE", "oders")
    with pytest.raises(StorageError, match=r"AWS credentials: The config profile .oders. could not be found"):
        open_store(StoreSettings(LakePath.parse("s3a://profile"), AWS))


def test_an_agent_that_is_not_up_yet_may_be_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a node that has just come an executor may be quicker than EKS's Pod Identity agent."""
    take_away(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/v1/credentials")

    def refused(*_: object, **__: object) -> None:
        raise CredentialRetrievalError(provider="container-role", error_msg="connection refused")

    monkeypatch.setattr("botocore.credentials.ContainerProvider.load", refused)
    with pytest.raises(StorageUnavailableError, match=r"no credentials of AWS: .*connection refused"):
        open_store(StoreSettings(LakePath.parse("s3a://agent"), AWS))


def test_metadata_of_a_node_that_has_just_started_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_away(monkeypatch, tmp_path)
    attempts: list[int] = []

    def late(self: Any) -> None:
        attempts.append(self._role_fetcher._num_attempts)

    monkeypatch.setattr("botocore.credentials.InstanceMetadataProvider.load", late)
    with pytest.raises(StorageError, match="no AWS credentials"):
        open_store(StoreSettings(LakePath.parse("s3a://metadata"), AWS))
    assert attempts == [4], "as for Kinesis"


STS_DENIES = ClientError({"Error": {"Code": "AccessDenied", "Message": "said STS"}}, "AssumeRoleWithWebIdentity")


@pytest.mark.parametrize(
    ("failure", "ours", "told"),
    [
        (
            EndpointConnectionError(endpoint_url="https://sts"),
            StorageUnavailableError,
            "look: no credentials of AWS: Could",
        ),
        (STS_DENIES, StorageDeniedError, "look: access denied; check the credentials .* said STS"),
    ],
)
def test_without_credentials_it_is_told_whether_to_wait(
    failure: Exception, ours: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    giver = Giver(failure)
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: giver)
    store = open_store(StoreSettings(LakePath.parse(f"s3a://giver-{ours.__name__}"), AWS))
    with pytest.raises(ours, match=told), translated("look"):
        obstore.head(store, "x")


def test_credentials_go_on_while_they_cannot_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    giver = Giver()
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: giver)
    store = open_store(StoreSettings(LakePath.parse("s3a://renewed"), AWS))
    assert isinstance(store, S3Store)
    given: Any = store.credential_provider
    assert given()["access_key_id"] == "key-1"
    giver.failure = EndpointConnectionError(endpoint_url="https://sts")
    assert given()["access_key_id"] == "key-1"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot create the folder"):
        open_store(StoreSettings(LakePath.parse(f"{tmp_path}/file/lake"), AWS))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (PermissionDeniedError("403"), StorageDeniedError),
        (UnauthenticatedError("401"), StorageDeniedError),
        (ValueError("bad path"), StorageError),
        (GenericError("timeout\n\nDebug source:\n…"), StorageUnavailableError),
        (OSError("disk full"), StorageUnavailableError),
        (GenericError("GET /lake: 416 Range Not Satisfiable: <Error><Code>InvalidRange</Code></Error>"), StorageError),
    ],
)
def test_foreign_errors_become_ours_with_their_cause(theirs: Exception, ours: type[Exception]) -> None:
    with pytest.raises(ours, match="put x") as caught, translated("put x"):
        raise theirs
    assert caught.value.__cause__ is theirs
    assert "Debug source" not in str(caught.value)


@pytest.fixture
def secure() -> Iterator[str]:
    """The endpoint of a server whose certificate nobody knows."""
    server = make_server("127.0.0.1", 0, lambda *_: [], ssl_context="adhoc")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def _told_of(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    take_away(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr("lakestream.storage._retries", lambda _: {"max_retries": 0})
    with pytest.raises(StorageUnavailableError) as caught:
        exists(StoreSettings(LakePath.parse("s3://lake"), S3Settings("eu-west-1", endpoint)), "x")
    told = str(caught.value)
    assert "\n" not in told
    return told.partition("error sending request")[2]


def test_a_server_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _told_of("http://127.0.0.1:1", monkeypatch, tmp_path) == ": Connection refused"


def test_a_certificate_that_is_not_trusted_is_told_with_what_to_set(
    secure: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = _told_of(secure, monkeypatch, tmp_path)
    assert re.fullmatch(r": \w+: the certificate of the server is not trusted; SSL_CERT_FILE names .*", told), told


@pytest.mark.parametrize(
    ("dump", "cause"),
    [
        ("Http {\n kind: Timeout,\n source: reqwest::Error {\n source: TimedOut,\n },\n },\n}", ": TimedOut"),
        (
            'Custom {\n kind: Other,\n error: "failed to look up: Name unknown",\n },\n),\n}',
            ": failed to look up: Name unknown",
        ),
        ("…", ""),
    ],
)
def test_of_what_was_not_answered_the_innermost_cause_is_told(dump: str, cause: str) -> None:
    with pytest.raises(StorageUnavailableError) as caught, translated("put x"):
        raise GenericError(f"GET /x: HTTP error: error sending request\n\nDebug source:\n{dump}")
    assert str(caught.value) == f"put x: GET /x: HTTP error: error sending request{cause}"


@pytest.mark.parametrize(
    ("answer", "ours", "said"),
    [
        (
            "404 Not Found: <?xml version='1.0'?>\n<Error>\n<Code>NoSuchBucket</Code>\n<Message>no bucket</Message>",
            StorageUnavailableError,
            "list x: GET /lake: 404 Not Found: NoSuchBucket: no bucket",
        ),
        (
            "403 Forbidden: <?xml version='1.0'?>\n<Error><Code>AccessDenied</Code></Error>",
            StorageDeniedError,
            "list x: access denied; check the credentials and the policy: GET /lake: 403 Forbidden: AccessDenied",
        ),
        (
            "403 Forbidden: <?xml version='1.0'?>\n<Error><Code>RequestTimeTooSkewed</Code></Error>",
            StorageUnavailableError,
            "list x: the clock of this machine is wrong: GET /lake: 403 Forbidden: RequestTimeTooSkewed",
        ),
    ],
)
def test_what_s3_says_to_a_listing_is_told(answer: str, ours: type[Exception], said: str) -> None:
    with pytest.raises(ours) as caught, translated("list x"):
        raise GenericError(f"GET /lake: {answer}\n\nDebug source:\n…")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("theirs", "what", "may_pass"),
    [
        (
            "Object at location /lake/x: Permission denied (os error 13)",
            "check who may read and write there: Object",
            False,
        ),
        ("The operation lacked the necessary privileges: 403", "check the credentials and the policy: The", True),
    ],
)
def test_what_is_denied_is_told_with_what_to_check(theirs: str, what: str, may_pass: bool) -> None:
    with pytest.raises(StorageError, match=f"put x: access denied; {what}") as caught, translated("put x"):
        raise PermissionDeniedError(theirs)
    assert isinstance(caught.value, AccessDeniedError) is may_pass
