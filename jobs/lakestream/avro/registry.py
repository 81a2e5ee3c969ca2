"""The AWS Glue Schema Registry: what schema a version has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

import botocore.session
import orjson

from lakestream.errors import AccessDeniedError, RegistryDeniedError, RegistryUnavailableError
from lakestream.kinesis import answers
from lakestream.kinesis.api import JsonApi, Service
from lakestream.kinesis.connections import Response
from lakestream.kinesis.credentials import RenewedCredentials, credentials_of
from lakestream.kinesis.retry import Backoff

PATIENCE = 120.0
"""Seconds for which it is waited for, as for Kinesis."""

_GLUE = Service("glue", "AWSGlue")
_ASKED = "GetSchemaVersion"
_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """What the registry has of a version, which never changes."""

    data_format: str
    """AVRO, JSON or PROTOBUF."""
    definition: str


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """The registries of an account in a Region. Picklable: executors get them with their task."""

    region: str
    role_arn: str | None = None
    """A role that they are asked by; None: as who this is."""


class GlueRegistry:
    """Asks for versions by their ids, which are their own whichever registry they are in."""

    def __init__(self, settings: RegistrySettings, patience: float = PATIENCE) -> None:
        """Nothing is asked yet.

        Args:
            settings: whose registries.
            patience: seconds for which throttling, server errors and silence are waited out.

        Raises:
            SettingsError: there are no credentials, or no endpoint.
            KinesisDeniedError, KinesisUnavailableError: nobody gives any credentials.
        """
        self._backoff = Backoff(patience, time.sleep, time.monotonic)
        session = botocore.session.Session()
        credentials = credentials_of(session, settings.role_arn, settings.region, "lakestream-schemas")
        renewed = RenewedCredentials(credentials, time.monotonic)
        self._api = JsonApi(
            _GLUE, session, renewed, region=settings.region, endpoint=None, connections=1, timeout=_TIMEOUT
        )

    def version(self, version: UUID) -> SchemaVersion | None:
        """What the registry has; None: it has no such version.

        Raises:
            RegistryDeniedError: a right is missing.
            RegistryUnavailableError: it does not answer, or too many ask it.
            KinesisDeniedError, KinesisUnavailableError: there are no credentials.
        """
        return self._backoff.call(lambda: self._look_up(version))

    def _look_up(self, version: UUID) -> SchemaVersion | None:
        try:
            answer = self._api.post(_ASKED, orjson.dumps({"SchemaVersionId": str(version)}))
            received = time.monotonic()
            if answer.status != 200:
                self._refuse(answer, received, version)
                return None
            found = orjson.loads(answer.body)
            self._api.observe(answer, received)
            return SchemaVersion(found["DataFormat"], found["SchemaDefinition"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RegistryUnavailableError(f"Glue's {_ASKED} of {version}: {error!r}") from error

    def _refuse(self, answer: Response, received: float, version: UUID) -> None:
        """Returns if there is no such version."""
        if code := answers.said(answer.body)[0]:
            self._api.observe(answer, received)
        if code == "EntityNotFoundException":
            return
        error = answers.error(answer.status, answer.body)
        if isinstance(error, AccessDeniedError):
            raise RegistryDeniedError(
                f"Glue denies {_ASKED}: {error}. Check the credentials of driver and executors, and their "
                "policy (charts/lakestream/iam/schema-registry.json has what it needs)"
            )
        raise RegistryUnavailableError(f"Glue's {_ASKED} of {version}: {error}")
