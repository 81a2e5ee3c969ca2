"""The credentials that requests are signed with, found and renewed as by any AWS SDK."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from lakestream_loadgen.errors import CredentialsError, SettingsError

logger = logging.getLogger(__name__)

_WORD = re.compile("[!-~]*")
_AGAIN = 30.0
"""Seconds for which what there is goes on once it could not be renewed: each try holds all requests up."""


def find_credentials(session: Session) -> Credentials:
    """Those that any AWS SDK would use here.

    Raises:
        SettingsError: there are none, or what names them is wrong.
    """
    try:
        credentials = session.get_credentials()
    except (BotoCoreError, ClientError) as error:
        raise SettingsError(f"AWS credentials: {error}") from error
    if credentials is None:
        raise SettingsError(
            "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role"
        )
    # Those that are given for a while come from a program, and to look at them would be to ask for them.
    if type(credentials) is Credentials:
        for name in ("access_key", "secret_key", "token"):
            if not _WORD.fullmatch(getattr(credentials, name) or ""):
                raise SettingsError(
                    f"AWS credentials: the {name.replace('_', ' ')} has a blank or a line's end, as `echo` puts one "
                    "behind it: write it without"
                )
    return credentials


def checked_region(name: str) -> str:
    """The name of a region, if it can be one: of others requests cannot be signed, and obstore panics.

    Raises:
        SettingsError: it is none.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise SettingsError(
            f"AWS_REGION, or the region of the profile, is {name!r}, which is no name of a region; "
            "write one as in eu-west-1"
        )
    return name


class RenewedCredentials:
    """Credentials as of now; those there are go on while whoever renews them is away."""

    def __init__(self, credentials: Credentials, clock: Callable[[], float] = time.monotonic) -> None:
        self._credentials = credentials
        self._clock = clock
        self._last: ReadOnlyCredentials | None = None
        self._due = clock()

    def now(self) -> ReadOnlyCredentials:
        """What to sign with. If it has expired meanwhile, the service says so.

        Raises:
            CredentialsError: there never were any.
        """
        if self._last is not None and self._clock() < self._due:
            return self._last
        try:
            self._last = self._credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError, RuntimeError) as error:  # the last: they were expired when they came
            if self._last is None:
                raise CredentialsError(str(error)) from error
            self._due = self._clock() + _AGAIN
            logger.warning("credentials of AWS cannot be renewed yet: %s", error)
        return self._last
