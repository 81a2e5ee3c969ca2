"""The credentials of AWS that Kinesis and S3 are asked with: found and renewed as by any AWS SDK.

Whoever gives them (STS, EKS's Pod Identity agent, a node's metadata) may be away for a while, as a service may: what
there is goes on until it expires.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError, InvalidConfigError
from botocore.session import Session

logger = logging.getLogger(__name__)

NOT_GIVEN = (BotoCoreError, ClientError, RuntimeError)
"""What botocore raises where it cannot renew credentials; the last: they were expired when they came."""
NOT_THERE_YET = (ClientError, CredentialRetrievalError)
"""What it raises where it looks for them, and whoever gives them does not; of other errors a setting is the cause."""

_WORD = re.compile("[!-~]+")
_AGAIN = 30.0
"""Seconds for which what there is goes on once it could not be renewed: each try holds its request up."""
_METADATA_ATTEMPTS = 4
"""Of asking a node's metadata, a second each, which are slow on a node that has just started. botocore's own is one."""


def look_for_credentials(session: Session) -> Credentials | None:
    """Those that any AWS SDK would use here; None: there are none.

    Raises:
        BotoCoreError, ClientError: as `NOT_THERE_YET`.
    """
    if int(session.get_config_variable("metadata_service_num_attempts")) == 1:
        session.set_config_variable("metadata_service_num_attempts", _METADATA_ATTEMPTS)
    found: Credentials | None = session.get_credentials()
    if type(found) is Credentials:  # those that are renewed are AWS's own
        _require_words(found)
    return found


def _require_words(given: Credentials) -> None:
    """Raise an error for what somebody has given that AWS never has, and that no header of a request can have."""
    parts = {"access key id": given.access_key, "secret access key": given.secret_key, "session token": given.token}
    for name, part in parts.items():
        if part and _WORD.fullmatch(part) is None:
            raise InvalidConfigError(
                error_msg=f"the {name} has a blank, a line's end or another character that is in none, as of a Secret "
                "whose value `echo` has ended with a line: give it anew without (`echo -n`)"
            )


def is_denied(error: Exception) -> bool:
    """Whether whoever gives credentials gives none to whoever this is."""
    return isinstance(error, ClientError) and str(error.response.get("Error", {}).get("Code")).startswith("AccessDen")


class LastingCredentials:
    """Credentials as of now, for any number of threads."""

    def __init__(self, credentials: Credentials, monotonic: Callable[[], float]) -> None:
        self._credentials = credentials
        self._monotonic = monotonic
        self._last: ReadOnlyCredentials | None = None
        self._due = monotonic()

    def now(self) -> ReadOnlyCredentials:
        """What to sign with.

        Raises:
            NOT_GIVEN: there were none yet.
        """
        if self._last is not None and self._monotonic() < self._due:
            return self._last
        try:
            self._last = self._credentials.get_frozen_credentials()
        except NOT_GIVEN as error:
            # botocore gives up ten minutes before they expire.
            if self._last is None:
                raise
            self._due = self._monotonic() + _AGAIN
            logger.warning("credentials of AWS cannot be renewed yet, and go on until they expire: %s", error)
        return self._last
