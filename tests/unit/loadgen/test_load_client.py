"""The client of the load, on a Kinesis with TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from lakestream_loadgen.errors import NotWrittenError, SettingsError
from lakestream_loadgen.kinesis.client import HttpKinesisClient, KinesisEndpoint
from lakestream_loadgen.kinesis.wire import decode_answer, encode_request
from lakestream_loadgen.records import Record
from lakestream_localkinesis.testing import local_kinesis


def test_a_server_is_trusted_whose_certificate_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = encode_request("orders", [Record("e", "k", b"x")])
    with local_kinesis(tls=tmp_path) as server:
        server.create_stream("orders")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        client = HttpKinesisClient(KinesisEndpoint.from_environment(), connections=1)
        assert decode_answer(client.put_records(body), 1).shard_ids == ["shardId-000000000000"]
        client.close()
        monkeypatch.delenv("AWS_CA_BUNDLE")
        stranger = HttpKinesisClient(KinesisEndpoint.from_environment(), connections=1)
        with pytest.raises(NotWrittenError, match="certificate verify failed"):
            stranger.put_records(body)
        stranger.close()
        assert len(server.records("orders")) == 1


@pytest.mark.parametrize(
    ("path", "sent"), [("", "/"), ("/", "/"), ("/gateway/kinesis", "/gateway/kinesis"), ("/gateway/", "/gateway/")]
)
def test_requests_go_to_the_path_of_the_endpoint_and_are_signed_for_it(
    path: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of the SDKs do."""
    signed: list[str | None] = []
    add_auth = SigV4Auth.add_auth
    posted: list[str] = []

    def sign(self: SigV4Auth, request: AWSRequest) -> None:
        signed.append(request.url)
        add_auth(self, request)

    def post(url: str, body: bytes, headers: dict[str, str]) -> None:
        posted.append(url)
        raise ConnectionRefusedError

    monkeypatch.setattr(SigV4Auth, "add_auth", sign)
    endpoint = KinesisEndpoint(f"http://127.0.0.1:9{path}", "eu-west-1", Credentials("local", "local"))
    client = HttpKinesisClient(endpoint, connections=1)
    monkeypatch.setattr(client._http, "post", post)
    with pytest.raises(NotWrittenError):
        client.put_records(b"{}")
    client.close()
    assert (posted, signed) == ([sent], [f"http://127.0.0.1:9{sent}"])


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what else an endpoint is found by."""
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "eu-west-1")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_KINESIS", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_that_requests_would_go_around_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://somebody:secret@proxy:3128")
    with pytest.raises(SettingsError, match=r"HTTPS_PROXY is set, .*kinesis\.eu-west-1\.\S+ to NO_PROXY") as told:
        KinesisEndpoint.from_environment()
    assert "secret" not in str(told.value)
    monkeypatch.setenv("NO_PROXY", "localhost,.amazonaws.com")
    assert KinesisEndpoint.from_environment().url == "https://kinesis.eu-west-1.amazonaws.com"


@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_of_something_else_is_none_of_kinesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    assert KinesisEndpoint.from_environment().region == "eu-west-1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_KINESIS", "http://127.0.0.1:4567")
    with pytest.raises(SettingsError, match=r"HTTP_PROXY is set, .*127\.0\.0\.1 to NO_PROXY"):
        KinesisEndpoint.from_environment()


def test_certificates_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "eu-west-1")
    monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/file.pem")
    with pytest.raises(SettingsError, match=r"AWS_CA_BUNDLE .*/no/such/file\.pem: .*No such file"):
        KinesisEndpoint.from_environment()
