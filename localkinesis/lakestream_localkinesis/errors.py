# ruff: noqa: N818 - the classes bear the API's own names for its errors.
"""Errors of the local Kinesis: one root, and one class per error type of the Kinesis API."""

from __future__ import annotations

from collections.abc import Sequence


class LocalKinesisError(Exception):
    """Root of everything this package raises on purpose."""


class SettingsError(LocalKinesisError):
    """A setting or a control command makes no sense; the message names it."""


class StartupError(LocalKinesisError):
    """The server could not be started, or did not answer in time."""


class UnwritableError(LocalKinesisError):
    """The folder of the data takes nothing: what a request did is not written down yet."""


class ApiError(LocalKinesisError):
    """An error that a Kinesis client is told about.

    The class name is the wire's `__type`, the text its `message`. Source: the Errors section of each
    operation in the Kinesis Data Streams API reference, and "Common Errors".
    """

    status = 400

    @property
    def code(self) -> str:
        """The error type as clients know it."""
        return type(self).__name__


class AccessDeniedException(ApiError):
    """The caller may not do this."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class DryRunOperationException(ApiError):
    """The request had DryRun, and nothing else was in its way."""

    def __init__(self) -> None:
        super().__init__("The request would have succeeded without the DryRun parameter.")


class ExpiredIteratorException(ApiError):
    """A shard iterator is older than five minutes."""


class ExpiredNextTokenException(ApiError):
    """A ListShards token is older than five minutes."""


class InternalFailure(ApiError):
    """The service failed; whether the request took effect is unknown to the client."""

    status = 500


class InternalFailureException(ApiError):
    """The same, within an event stream."""

    status = 500


class InvalidArgumentException(ApiError):
    """A parameter is well-formed, and wrong for this stream."""


class LimitExceededException(ApiError):
    """A limit of the account or of an operation's rate."""


class ProvisionedThroughputExceededException(ApiError):
    """A shard's rate is used up: try again with backoff."""


class RequestEntityTooLargeException(ApiError):
    """A body that is larger than any valid one; who sends it again sends it in vain."""

    status = 413


class ResourceInUseException(ApiError):
    """The stream exists, or is not ACTIVE."""


class ResourceNotFoundException(ApiError):
    """No such stream or shard."""


class SerializationException(ApiError):
    """The body does not parse, or a field has the wrong type."""


class UnknownOperationException(ApiError):
    """An operation that this server does not have."""


class ValidationException(ApiError):
    """A parameter violates a constraint of the API's model."""

    MOST = 10
    """Violations that are named, and counted."""

    violations: tuple[str, ...] = ()

    @classmethod
    def of(cls, violations: Sequence[str]) -> ValidationException:
        """Several at once, in Kinesis's words."""
        told = violations[: cls.MOST]
        plural = "s" if len(told) > 1 else ""
        error = cls(f"{len(told)} validation error{plural} detected: {'; '.join(told)}")
        error.violations = tuple(violations)
        return error
