"""Every error that this package raises on purpose.

The adapters translate what the package `kubernetes` and the API server say into these; the type says what the caller
may do.
"""

from __future__ import annotations

from datetime import timedelta


class OperatorError(Exception):
    """Root of this package's errors."""


class SettingsError(OperatorError):
    """The settings file, or the credentials that it relies on, cannot be used; the message names the field or file."""


class ApiError(OperatorError):
    """The API server refused a request for good; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class NotFoundError(ApiError):
    """There is no such object (any more)."""


class ConflictError(ApiError):
    """The object is not what the request took it for: it changed, it is another one, or it exists already."""


class InvalidError(ApiError):
    """The object says what it may not, or changes what cannot be changed."""


class ForbiddenError(ApiError):
    """The operator may not do that; the message names verb and resource."""


class RetryLaterError(OperatorError):
    """The API server is overloaded, restarting or out of reach; the same request may succeed later."""

    def __init__(self, message: str, after: timedelta | None = None) -> None:
        self.after = after
        """How long the API server wants to be left alone, if it says so."""
        super().__init__(message)


class NotServedError(RetryLaterError):
    """Whoever answers does not know such requests: the API server, of a kind that is not defined, or a proxy before it.
    Nothing follows from it about any object."""


class NameTakenError(OperatorError):
    """An object that is not ours has a name that we need; the message names it and says what to do."""


class DefinitionTooOldError(OperatorError):
    """The cluster's definition of a kind does not have fields that we need; the message names them."""


class StoreWentBackError(OperatorError):
    """What the API server has is older than what was known: nothing that is known can be relied on."""


class LeadershipLostError(OperatorError):
    """Another replica may be acting by now; this one must stop at once."""
