"""The credentials that requests are signed with. Whoever gives them is waited for as Kinesis is."""

from __future__ import annotations

from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from lakestream.credentials import NOT_GIVEN, NOT_THERE_YET, LastingCredentials, is_denied, look_for_credentials
from lakestream.errors import KinesisDeniedError, KinesisError, KinesisUnavailableError, SettingsError
from lakestream.kinesis.port import Monotonic


class RenewedCredentials:
    """Credentials as of now, for any number of threads."""

    def __init__(self, credentials: Credentials, monotonic: Monotonic) -> None:
        self._credentials = LastingCredentials(credentials, monotonic)

    def now(self) -> ReadOnlyCredentials:
        """What to sign with.

        Raises:
            KinesisDeniedError: nobody gives any to whoever this is.
            KinesisUnavailableError: whoever gives them is away.
        """
        try:
            return self._credentials.now()
        except NOT_GIVEN as error:
            raise _told(error) from error


def find_credentials(session: Session) -> Credentials:
    """Those that any AWS SDK would use here.

    Raises:
        SettingsError: there are none, or what names them is wrong.
        KinesisDeniedError, KinesisUnavailableError: as `RenewedCredentials.now`.
    """
    try:
        credentials = look_for_credentials(session)
    except NOT_THERE_YET as error:
        raise _told(error) from error
    except BotoCoreError as error:
        raise SettingsError(f"AWS credentials: {error}") from error
    if credentials is None:
        raise SettingsError(
            "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the pod a role"
        )
    return credentials


def _told(error: Exception) -> KinesisError:
    return (KinesisDeniedError if is_denied(error) else KinesisUnavailableError)(f"no credentials of AWS: {error}")
