"""The Glue Schema Registry by its API, as moto serves it; and by what it refuses, which moto does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from uuid import UUID

import boto3
import pytest
from answers import Answers, answering, serving
from moto_s3 import moto_s3

from lakestream.avro import GlueRegistry, RegistrySettings, SchemaVersion
from lakestream.errors import RegistryDeniedError, RegistryUnavailableError, SettingsError

SETTINGS = RegistrySettings("eu-west-1")
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
VERSION = UUID(int=7)
Ask = Callable[[UUID], SchemaVersion | None]


@pytest.fixture(name="ask_at")
def _ask_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ask]:
    """Asks at an address, once if not told otherwise."""

    def at(url: str, patience: float = 0.0) -> Ask:
        for name, value in {
            "AWS_ENDPOINT_URL_GLUE": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        return GlueRegistry(SETTINGS, patience).version

    return at


def said(status: int, **body: str) -> tuple[int, bytes]:
    """An answer of Glue."""
    return status, json.dumps(body).encode()


def test_a_version_has_its_schema_whichever_registry_it_is_in(ask_at: Callable[..., Ask]) -> None:
    with moto_s3("registry") as url:
        ask = ask_at(url)
        glue = boto3.client("glue", SETTINGS.region)
        found = {}
        for name in ("shop", "billing"):
            glue.create_registry(RegistryName=name)
            made = glue.create_schema(
                RegistryId={"RegistryName": name},
                SchemaName="order",
                DataFormat="AVRO",
                Compatibility="NONE",
                SchemaDefinition=ORDER,
            )
            found[name] = UUID(made["SchemaVersionId"])
        glue.close()
        assert [ask(version) for version in found.values()] == [SchemaVersion("AVRO", ORDER)] * 2
        assert ask(VERSION) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDeniedException", RegistryDeniedError),
        ("UnrecognizedClientException", RegistryDeniedError),
        ("ThrottlingException", RegistryUnavailableError),
        ("InternalServiceException", RegistryUnavailableError),
    ],
)
def test_a_refusal_is_told_as_what_it_is(ask_at: Callable[..., Ask], code: str, kind: type[Exception]) -> None:
    with answering(said(400, __type=code, message="not you")) as url:
        ask = ask_at(url)
        with pytest.raises(kind, match=r"GetSchemaVersion.*not you"):
            ask(VERSION)


def test_who_has_nothing_is_told_from_who_does_not_answer(ask_at: Callable[..., Ask]) -> None:
    with answering(said(400, __type="EntityNotFoundException", message="none")) as url:
        assert ask_at(url)(VERSION) is None
    with pytest.raises(RegistryUnavailableError, match="GetSchemaVersion of 00000000-0000-0000-0000-000000000007"):
        ask_at(url)(VERSION)
    with answering(said(200, SchemaVersionId=str(VERSION))) as url, pytest.raises(RegistryUnavailableError):
        ask_at(url)(VERSION)


def test_whoever_does_not_answer_is_waited_for(ask_at: Callable[..., Ask]) -> None:
    throttled = said(400, __type="ThrottlingException", message="too many")
    away = said(503, message="away")
    with answering(throttled, away, said(200, DataFormat="AVRO", SchemaDefinition=ORDER)) as url:
        assert ask_at(url, 60.0)(VERSION) == SchemaVersion("AVRO", ORDER)


class Glue(Answers):
    """Whose clock is twelve minutes ahead of this one."""

    def reply(self) -> None:
        now = datetime.now(UTC) + timedelta(minutes=12)
        signed = datetime.strptime(f"{self.headers['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z")
        is_off = abs(now - signed) > timedelta(minutes=5)
        status, body = (
            said(400, __type="InvalidSignatureException", message="Signature expired: 20260131T120000Z is now earlier")
            if is_off
            else said(200, DataFormat="AVRO", SchemaDefinition=ORDER)
        )
        self.answer(status, body, date=format_datetime(now, usegmt=True))


def test_requests_are_signed_by_the_registrys_own_clock(ask_at: Callable[..., Ask]) -> None:
    with serving(Glue) as url:
        assert ask_at(url, 60.0)(VERSION) == SchemaVersion("AVRO", ORDER)


def test_a_token_that_has_just_run_out_is_no_denial(ask_at: Callable[..., Ask]) -> None:
    expired = said(400, __type="ExpiredTokenException", message="The security token is expired")
    with answering(expired, said(200, DataFormat="AVRO", SchemaDefinition=ORDER)) as url:
        assert ask_at(url, 60.0)(VERSION) == SchemaVersion("AVRO", ORDER)


@pytest.mark.parametrize(
    "url",
    ["localhost:5000", "glue", "http://127.0.0.1:99999", "http://127.0.0.1:9/glue", "http://me:secret@127.0.0.1:9"],
)
def test_an_endpoint_that_is_none_is_told(ask_at: Callable[..., Ask], url: str) -> None:
    with pytest.raises(SettingsError, match="no endpoint for Glue in region 'eu-west-1'") as told:
        ask_at(url)
    assert "secret" not in str(told.value)
