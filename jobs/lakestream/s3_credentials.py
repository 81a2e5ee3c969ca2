"""The credentials of AWS that S3 is asked with: those of Kinesis (`kinesis/credentials.py`), in obstore's terms."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import botocore.session
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError

from lakestream.credentials import NOT_GIVEN, NOT_THERE_YET, LastingCredentials, is_denied, look_for_credentials
from lakestream.storage import StorageDeniedError, StorageError, StorageUnavailableError

if TYPE_CHECKING:
    from obstore.store import S3Credential


class CredentialChain:
    """Botocore's chain (environment, profile, IRSA, EKS Pod Identity, instance), as the Kinesis client uses it.

    obstore's own chain knows neither profiles nor SSO, and two chains could pick two identities.
    """

    # Botocore renews credentials 10 to 15 min before they end; asking every 5 min always gets live ones.
    _ASK_AGAIN = timedelta(minutes=5)

    def __init__(self) -> None:
        try:
            found = look_for_credentials(botocore.session.Session())
        except NOT_THERE_YET as error:
            raise _not_given(error) from error
        except BotoCoreError as error:
            raise StorageError(f"AWS credentials: {error}") from error
        if found is None:
            raise StorageError(
                "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the pod's role"
            )
        self._are_renewed = isinstance(found, RefreshableCredentials)
        self._credentials = LastingCredentials(found, time.monotonic)

    def __call__(self) -> S3Credential:
        try:
            frozen = self._credentials.now()
        except NOT_GIVEN as error:
            raise _not_given(error) from error
        return {
            "access_key_id": frozen.access_key or "",
            "secret_access_key": frozen.secret_key or "",
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + self._ASK_AGAIN if self._are_renewed else None,
        }


def _not_given(error: Exception) -> StorageDeniedError | StorageUnavailableError:
    what = f"no credentials of AWS: {error}"
    return StorageDeniedError(what) if is_denied(error) else StorageUnavailableError(what)
