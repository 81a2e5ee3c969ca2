"""Who gives credentials may be away, as Kinesis may; and what there is goes on until it expires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
)

from aws_credentials import Giver, take_away
from lakestream.errors import KinesisDeniedError, KinesisUnavailableError, LakeStreamError, SettingsError
from lakestream.kinesis.credentials import RenewedCredentials, find_credentials
from lakestream.testing.logs import ManualClock


def sts(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "said STS"}}, "AssumeRoleWithWebIdentity")


FAILURES = [
    (sts("Throttling"), KinesisUnavailableError),
    (sts("IDPCommunicationError"), KinesisUnavailableError),
    (sts("AccessDenied"), KinesisDeniedError),
    (EndpointConnectionError(endpoint_url="https://sts"), KinesisUnavailableError),
    (NoCredentialsError(), KinesisUnavailableError),
    (
        RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired."),
        KinesisUnavailableError,
    ),
]


@pytest.mark.parametrize(("failure", "told"), FAILURES, ids=lambda one: str(one)[:40])
def test_without_any_it_is_told_whether_to_wait(failure: Exception, told: type[LakeStreamError]) -> None:
    giver: Any = Giver(failure)
    credentials = RenewedCredentials(giver, ManualClock().monotonic)
    with pytest.raises(told, match="no credentials of AWS"):
        credentials.now()
    giver.failure = None
    assert credentials.now().access_key == "key-2"


@pytest.mark.parametrize(("failure", "told"), FAILURES, ids=lambda one: str(one)[:40])
def test_those_that_there_are_go_on_while_they_cannot_be_renewed(failure: Exception, told: object) -> None:
    clock = ManualClock()
    giver: Any = Giver()
    credentials = RenewedCredentials(giver, clock.monotonic)
    assert [credentials.now().access_key for _ in range(2)] == ["key-1", "key-2"]
    giver.failure = failure
    assert [credentials.now().access_key for _ in range(3)] == ["key-2"] * 3
    assert giver.asked == 3, "each try holds a request up"
    clock.advance(30)
    assert credentials.now().access_key == "key-2"
    assert giver.asked == 4
    giver.failure = None
    clock.advance(30)
    assert credentials.now().access_key == "key-5"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[[str, str], None]:
    """An environment that says nothing of AWS."""
    take_away(monkeypatch, tmp_path)
    return monkeypatch.setenv


def test_where_there_are_none_it_is_a_setting(bare: Callable[[str, str], None]) -> None:
    with pytest.raises(SettingsError, match="no AWS credentials: set AWS_ACCESS_KEY_ID"):
        find_credentials(botocore.session.get_session())


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("AWS_ACCESS_KEY_ID", "access key id"),
        ("AWS_SECRET_ACCESS_KEY", "secret access key"),
        ("AWS_SESSION_TOKEN", "session token"),
    ],
)
@pytest.mark.parametrize("value", ["AKIA\n", "AKIA\r\n", " AKIA", "\N{LEFT DOUBLE QUOTATION MARK}AKIA"])
def test_what_no_header_can_have_is_a_setting(
    bare: Callable[[str, str], None], variable: str, name: str, value: str
) -> None:
    """`echo` ends the value of a Secret with a line."""
    for other in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        bare(other, "AKIA/+=")
    assert find_credentials(botocore.session.get_session()) is not None
    bare(variable, value)
    with pytest.raises(SettingsError, match=f"AWS credentials: the {name} has a blank, a line's end") as told:
        find_credentials(botocore.session.get_session())
    assert "AKIA" not in str(told.value), "nobody is shown a secret"


def test_a_profile_that_is_not_there_is_a_setting(bare: Callable[[str, str], None]) -> None:
    bare("AWS_PROFILE", "oders")
    with pytest.raises(SettingsError, match=r"AWS credentials: The config profile .oders. could not be found"):
        find_credentials(botocore.session.get_session())


def test_an_agent_that_is_not_up_yet_is_waited_for(
    bare: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """EKS's Pod Identity agent comes up with its node, and a pod may be quicker."""
    bare("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/v1/credentials")

    def refused(*_: object, **__: object) -> None:
        raise CredentialRetrievalError(provider="container-role", error_msg="connection refused")

    monkeypatch.setattr("botocore.credentials.ContainerProvider.load", refused)
    with pytest.raises(KinesisUnavailableError, match=r"no credentials of AWS: .*connection refused"):
        find_credentials(botocore.session.get_session())
