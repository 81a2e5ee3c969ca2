"""What a question can fail with, beside what storage and log fail with."""

from __future__ import annotations

from lakestream.errors import PermanentError, RetryLaterError, SettingsError


class SqlError(SettingsError):
    """The SQL is none, or names what is not there."""


class UnreadableError(PermanentError):
    """An engine cannot read the table; the message says which, why, and what can."""


class FilesGoneError(RetryLaterError):
    """Files were removed while they were read; of the same question asked again it is known before whether they are."""
