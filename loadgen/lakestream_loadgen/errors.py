"""Errors of the load generator; the type says what a caller may do about one."""

from __future__ import annotations


class LoadgenError(Exception):
    """Root of all errors raised by this package."""


class SettingsError(LoadgenError, ValueError):
    """A setting is missing or out of its range; the message names it and says what is allowed."""


class LedgerError(LoadgenError):
    """A ledger file cannot be read, is not one of ours, or is damaged anywhere but at its torn tail."""


class LakeError(LoadgenError):
    """A file of the lake cannot be read, or lacks a column that the audit needs."""


class CredentialsError(LoadgenError):
    """Whoever gives credentials of AWS has given none yet."""


class PutRecordsError(LoadgenError):
    """A whole PutRecords call gave no answer per record. ``code`` is Kinesis's or the network's name for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code


class NotWrittenError(PutRecordsError):
    """Nothing of the call was written (no connection, throttled as a whole): retry later."""


class OutcomeUnknownError(PutRecordsError):
    """The call may have taken effect (connection lost, timeout, HTTP 5xx): a retry may write duplicates."""


class RefusedError(PutRecordsError):
    """Kinesis refuses the call and will refuse it again (no such stream, no permission, invalid): give up."""
