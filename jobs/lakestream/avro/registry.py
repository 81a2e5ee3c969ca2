"""The AWS Glue Schema Registry, through botocore: what schema a version has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import botocore.session
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError

from lakestream.errors import RegistryDeniedError, RegistryUnavailableError
from lakestream.kinesis.credentials import RenewedCredentials, assumed, find_credentials
from lakestream.kinesis.retry import Backoff

PATIENCE = 120.0
"""Seconds for which it is waited for, as for Kinesis."""

_CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 1})
_ASKED = "GetSchemaVersion"
_DENIED = ("AccessDen", "ExpiredToken", "InvalidClientTokenId", "InvalidSignature", "UnrecognizedClient")


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
            SettingsError, KinesisDeniedError, KinesisUnavailableError: there are no credentials.
        """
        self._region = settings.region
        self._backoff = Backoff(patience, time.sleep, time.monotonic)
        self._session = botocore.session.Session()
        credentials = find_credentials(self._session)
        if settings.role_arn is not None:
            credentials = assumed(self._session, credentials, settings.role_arn, settings.region, "lakestream-schemas")
        self._credentials = RenewedCredentials(credentials, time.monotonic)
        self._signed_with: ReadOnlyCredentials | None = None
        self._client: Any = None

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
            found = self._signing().get_schema_version(SchemaVersionId=str(version))
            return SchemaVersion(found["DataFormat"], found["SchemaDefinition"])
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code == "EntityNotFoundException":
                return None
            if code.startswith(_DENIED):
                raise RegistryDeniedError(
                    f"Glue denies {_ASKED}: {error}. Check the credentials of driver and executors, and their "
                    "policy (charts/lakestream/iam/schema-registry.json has what it needs)"
                ) from error
            raise RegistryUnavailableError(f"Glue's {_ASKED} of {version}: {error}") from error
        except (BotoCoreError, KeyError) as error:
            raise RegistryUnavailableError(f"Glue's {_ASKED} of {version}: {error}") from error

    def _signing(self) -> Any:
        """A client with the credentials of now: to make one takes a quarter of a second."""
        if (now := self._credentials.now()) != self._signed_with:
            self._client = self._session.create_client(
                *("glue", self._region),
                aws_access_key_id=now.access_key,
                aws_secret_access_key=now.secret_key,
                aws_session_token=now.token,
                config=_CONFIG,
            )
            self._signed_with = now
        return self._client
