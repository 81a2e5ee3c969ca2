"""A stream that is read by a role, which a server in place of STS gives, or does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from lakestream.errors import KinesisDeniedError, KinesisUnavailableError
from lakestream.kinesis import HttpKinesisClient, KinesisSettings
from lakestream_localkinesis.testing import LocalKinesis

ROLE = "arn:aws:iam::111122223333:role/reads-orders"
_GIVEN = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>arn:aws:sts::111122223333:assumed-role/reads-orders/x</Arn>
<AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
<SessionToken>token-{number}</SessionToken><Expiration>{until}</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""
_ERROR = """<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>
<Message>User is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"""


class Sts(ThreadingHTTPServer):
    """Gives roles for as long as it is told, or refuses them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.asked: list[dict[str, list[str]]] = []
        self.signed: list[str] = []
        self.refuses = ""
        self.lasts = timedelta(hours=1)


class _Asked(BaseHTTPRequestHandler):
    server: Sts

    def do_POST(self) -> None:
        sts = self.server
        sts.asked.append(parse_qs(self.rfile.read(int(self.headers["content-length"])).decode()))
        sts.signed.append(self.headers["authorization"])
        until = (datetime.now(UTC) + sts.lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
        given = _GIVEN.format(number=len(sts.asked), until=until)
        answer = (_ERROR.format(code=sts.refuses) if sts.refuses else given).encode()
        self.send_response(403 if sts.refuses else 200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sts(server: LocalKinesis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOWN")
    with Sts() as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{sts.server_address[1]}")
        thread = threading.Thread(target=sts.serve_forever, args=(0.02,))
        thread.start()
        yield sts
        sts.shutdown()
        thread.join()


def client_of(server: LocalKinesis, stream: str) -> HttpKinesisClient:
    settings = KinesisSettings(stream, server.region, server.endpoint, role_arn=ROLE, patience=0.2)
    return HttpKinesisClient(settings)


def test_requests_are_signed_as_the_role_which_is_asked_for_once(sts: Sts, server: LocalKinesis) -> None:
    server.create_stream("by-a-role")
    client = client_of(server, "by-a-role")
    assert client.describe_stream_summary().arn.endswith("stream/by-a-role")
    assert client.list_shards()
    (asked,) = sts.asked
    assert (asked["Action"], asked["RoleArn"]) == (["AssumeRole"], [ROLE])
    assert asked["RoleSessionName"] == ["lakestream-by-a-role"]
    assert "Credential=AKIAOWN/" in sts.signed[0]
    headers = client._api._headers("ListShards", b"{}")
    assert "Credential=ASIA1/" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token-1"
    client.close()


def test_a_role_is_taken_anew_before_it_expires(sts: Sts, server: LocalKinesis) -> None:
    server.create_stream("by-a-short-role")
    sts.lasts = timedelta(minutes=5)  # botocore's own margin is ten
    client = client_of(server, "by-a-short-role")
    for number in (1, 2):
        assert f"Credential=ASIA{number}/" in client._api._headers("ListShards", b"{}")["authorization"]
    client.close()


def test_who_is_not_trusted_is_told_so(sts: Sts, server: LocalKinesis) -> None:
    sts.refuses = "AccessDenied"
    client = client_of(server, "orders")
    with pytest.raises(KinesisDeniedError, match=r"no credentials of AWS: .*sts:AssumeRole"):
        client.describe_stream_summary()
    sts.refuses = ""
    server.create_stream("orders")
    assert client.describe_stream_summary().arn.endswith("stream/orders")
    client.close()


def test_an_sts_that_is_away_is_waited_for(sts: Sts, server: LocalKinesis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    client = client_of(server, "orders")
    with pytest.raises(KinesisUnavailableError, match="no credentials of AWS: "):
        client.describe_stream_summary()
    client.close()


def test_names_of_sessions_are_as_long_as_they_may_be(sts: Sts, server: LocalKinesis) -> None:
    client = client_of(server, "a" * 128)
    client._api._headers("ListShards", b"{}")
    ((name,),) = [asked["RoleSessionName"] for asked in sts.asked]
    assert (len(name), name[:12]) == (64, "lakestream-a")
    client.close()
