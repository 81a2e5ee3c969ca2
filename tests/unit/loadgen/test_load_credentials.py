"""Who gives credentials may be away: a load goes on with those that there are, and never ends for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError

from aws_credentials import Giver, take_away
from lakestream_loadgen.credentials import RenewedCredentials, find_credentials
from lakestream_loadgen.errors import LakeError, NotWrittenError, SettingsError
from lakestream_loadgen.kinesis.client import HttpKinesisClient, KinesisEndpoint
from lakestream_loadgen.storage import Folder

FAILURES = [
    ClientError({"Error": {"Code": "Throttling", "Message": "said STS"}}, "AssumeRoleWithWebIdentity"),
    CredentialRetrievalError(provider="container-role", error_msg="said the agent"),
    RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired."),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: type(one).__name__)
def test_those_that_there_are_go_on_while_they_cannot_be_renewed(failure: Exception) -> None:
    giver: Any = Giver()
    now = 0.0
    credentials = RenewedCredentials(giver, lambda: now)
    assert credentials.now().access_key == "key-1"
    giver.failure = failure
    assert [credentials.now().access_key for _ in range(3)] == ["key-1"] * 3
    assert giver.asked == 2, "each try holds all requests up"
    giver.failure = None
    now = 30.0
    assert credentials.now().access_key == "key-3"


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: type(one).__name__)
def test_without_any_a_call_is_tried_again(failure: Exception) -> None:
    giver: Any = Giver(failure)
    client = HttpKinesisClient(KinesisEndpoint("http://127.0.0.1:9", "eu-west-1", giver), connections=1)
    with pytest.raises(NotWrittenError, match="NoCredentials"):
        client.put_records(b"{}")
    client.close()


@pytest.mark.parametrize(
    ("profile", "told"), [("oders", "AWS credentials: The config profile .oders."), ("", "no AWS credentials: set")]
)
def test_an_environment_without_credentials_is_told_in_a_line(
    profile: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_away(monkeypatch, tmp_path)
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)
    with pytest.raises(SettingsError, match=told):
        find_credentials(botocore.session.get_session())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AWS_REGION", "eu-west-1 ", "is 'eu-west-1 ', which is no name of a region"),
        ("AWS_REGION", "eu-west-1\n", "which is no name of a region; write one"),
        ("AWS_ACCESS_KEY_ID", "local\n", "the access key has a blank or a line's end"),
        ("AWS_SECRET_ACCESS_KEY", "local ", "the secret key has a blank or a line's end"),
        ("AWS_SESSION_TOKEN", "local\n", "the token has a blank or a line's end"),
    ],
)
def test_what_nothing_can_be_signed_with_is_told(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(one, "eu-west-1")
    monkeypatch.setenv(name, value)
    with pytest.raises(LakeError, match=said):
        Folder("s3://lake/_ledger")
    with pytest.raises(SettingsError, match="REGION|region" if "REGION" in name else said):
        KinesisEndpoint.from_environment()
