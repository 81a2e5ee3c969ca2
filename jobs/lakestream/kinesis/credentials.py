"""The credentials that requests are signed with: found and renewed as by any AWS SDK.

Whoever gives them (STS, EKS's Pod Identity agent, a node's metadata) may be away for a while as Kinesis may: that is
waited for, and what there is goes on until it expires.
"""

from __future__ import annotations

import logging

from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError
from botocore.session import Session

from lakestream.errors import KinesisDeniedError, KinesisError, KinesisUnavailableError, SettingsError
from lakestream.kinesis.port import Monotonic

logger = logging.getLogger(__name__)

_AGAIN = 30.0
"""Seconds for which what there is goes on once it could not be renewed: each try holds its request up."""
_METADATA_ATTEMPTS = 4
"""Of asking a node's metadata, a second each, which are slow on a node that has just started. botocore's own is one."""


class RenewedCredentials:
    """Credentials as of now, for any number of threads."""

    def __init__(self, credentials: Credentials, monotonic: Monotonic) -> None:
        self._credentials = credentials
        self._monotonic = monotonic
        self._last: ReadOnlyCredentials | None = None
        self._due = monotonic()

    def now(self) -> ReadOnlyCredentials:
        """What to sign with.

        Raises:
            KinesisDeniedError: nobody gives any to whoever this is.
            KinesisUnavailableError: whoever gives them is away.
        """
        if self._last is not None and self._monotonic() < self._due:
            return self._last
        try:
            self._last = self._credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError, RuntimeError) as error:  # the last: they were expired when they came
            # botocore gives up ten minutes before they expire.
            if self._last is None:
                raise _told(error) from error
            self._due = self._monotonic() + _AGAIN
            logger.warning("credentials of AWS cannot be renewed yet, and go on until they expire: %s", error)
        return self._last


def find_credentials(session: Session) -> Credentials:
    """Those that any AWS SDK would use here.

    Raises:
        SettingsError: there are none, or what names them is wrong.
        KinesisDeniedError, KinesisUnavailableError: as `RenewedCredentials.now`.
    """
    try:
        if int(session.get_config_variable("metadata_service_num_attempts")) == 1:
            session.set_config_variable("metadata_service_num_attempts", _METADATA_ATTEMPTS)
        credentials = session.get_credentials()
    except (ClientError, CredentialRetrievalError) as error:
        raise _told(error) from error
    except BotoCoreError as error:
        raise SettingsError(f"AWS credentials: {error}") from error
    if credentials is None:
        raise SettingsError(
            "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the pod a role"
        )
    return credentials


def _told(error: Exception) -> KinesisError:
    denied = isinstance(error, ClientError) and str(error.response.get("Error", {}).get("Code")).startswith("AccessDen")
    return (KinesisDeniedError if denied else KinesisUnavailableError)(f"no credentials of AWS: {error}")
