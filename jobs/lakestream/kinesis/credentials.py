"""The credentials that requests are signed with. Whoever gives them is waited for as Kinesis is."""

from __future__ import annotations

from functools import partial

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
    ReadOnlyCredentials,
)
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


def credentials_of(session: Session, role_arn: str | None, region: str, name: str) -> Credentials:
    """Those of a role, as by `assumed`; without one, those that any AWS SDK would use here.

    Raises:
        SettingsError, KinesisDeniedError, KinesisUnavailableError: as by `find_credentials`.
    """
    own = find_credentials(session)
    return own if role_arn is None else assumed(session, own, role_arn, region, name)


def assumed(session: Session, own: Credentials, role_arn: str, region: str, name: str) -> Credentials:
    """Those of a role, which STS gives to whom the role trusts, and anew before they expire. Nothing is asked yet.

    Args:
        session: of botocore, by whose settings STS is found.
        own: by which STS is asked.
        role_arn: of the role.
        region: whose STS is asked.
        name: of what is done by the role, in the logs of its account.
    """
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(session.create_client, region_name=region, config=_STS),
        source_credentials=own,
        role_arn=role_arn,
        extra_args={"RoleSessionName": name[:_LONGEST_NAME]},
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


_STS = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
_LONGEST_NAME = 64
"""Of a session of a role."""


def _told(error: Exception) -> KinesisError:
    return (KinesisDeniedError if is_denied(error) else KinesisUnavailableError)(f"no credentials of AWS: {error}")
