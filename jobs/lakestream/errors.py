"""Every error that this package raises on purpose.

The three middle classes say what the caller may do: `RetryLaterError` (the same call may succeed
later), `PermanentError` (it never will, until a person changes something), `OutcomeUnknownError`
(it may or may not have taken effect; look before trying again). Adapters translate the errors of
botocore, urllib3, obstore and Spark into these, with the original as the cause.

Spark carries an executor's exception to the driver as text, so the messages alone must tell an
operator which shard, table or field is meant and what to do.
"""

from __future__ import annotations

from datetime import datetime


class LakeStreamError(Exception):
    """Root of all errors of the data plane."""


class RetryLaterError(LakeStreamError):
    """The cause is expected to pass: throttling, a server error, a lost connection."""


class PermanentError(LakeStreamError):
    """Trying again changes nothing; the message says what a person has to do."""


class OutcomeUnknownError(LakeStreamError):
    """The request may have taken effect although no answer came."""


class AccessDeniedError(PermanentError):
    """S3, Kinesis or Glue denies a request; the message says which one. What was allowed just now is denied for some
    time yet, so that a driver believes it only after a while (`anew`)."""


class InvalidValueError(PermanentError, ValueError):
    """A value breaks an invariant of its type; the message quotes field and value."""


class SettingsError(PermanentError):
    """The LakeStream document asks for something impossible; the message names the field."""


class SettingsChangedError(SettingsError):
    """An immutable setting of an existing table or checkpoint was changed (record key, table type, …)."""


class SchemaError(SettingsError):
    """`spec.schema` or `spec.transform` is not what Spark accepts."""


class RestoreError(PermanentError):
    """The table cannot be taken back there; the message says why."""


class IdentityMismatchError(PermanentError):
    """The checkpoint belongs to another stream, or to one that was deleted and created again."""


class StreamRecreatedError(IdentityMismatchError):
    """The stream was deleted, and another one of its name was created."""

    @classmethod
    def of(cls, arn: str, was: datetime, now: datetime) -> StreamRecreatedError:
        """`was` and `now`: when the checkpoint's stream was created, and the present one."""
        return cls(
            f"the stream {arn} was deleted and created again: that of the checkpoint was created at {was.isoformat()}, "
            f"the present one at {now.isoformat()}. Its positions mean nothing any more. Give the writers another path "
            "and another spec.checkpoint, to begin anew."
        )


class CheckpointGoneError(PermanentError):
    """The checkpoint was deleted while a driver worked with it."""


class TableOwnedError(PermanentError):
    """Another checkpoint writes the table."""


class TableGoneError(PermanentError):
    """The table was deleted while a driver wrote it."""


class FencedError(PermanentError):
    """A driver with a higher epoch owns the checkpoint; this one must stop without writing."""


class CorruptLogError(PermanentError):
    """An object of the log cannot be decoded, or contradicts its neighbours."""


class SinkError(LakeStreamError):
    """A sink could not make a batch visible."""


class ExpressionError(SinkError):
    """SQL fails at a value of a record. The next start finds such records, if rows are made of one record each."""


class QuarantineLimitError(PermanentError):
    """More records than the configured fraction of a batch were unusable."""


class RequestError(PermanentError):
    """A replay, a backfill or work on a table cannot be asked for, or not now."""


class DataLossError(PermanentError):
    """Records were trimmed from the stream before they were read."""

    @classmethod
    def of(cls, shard_id: str, what: str) -> DataLossError:
        return cls(
            f"{shard_id}: {what}. To go on without these records set spec.source.kinesis.onDataLoss: skip; "
            "to have more time in future raise the stream's retention period."
        )


class RangeError(PermanentError):
    """A planned range cannot be read as planned: its records are not where the plan saw them."""


class KinesisError(LakeStreamError):
    """Kinesis refused a request, or its answer made no sense."""


class KinesisRejectedError(KinesisError, PermanentError):
    """A request that Kinesis will never accept: denied, malformed, unknown operation."""


class KinesisDeniedError(KinesisRejectedError, AccessDeniedError):
    """A right on the stream or on its key is missing, or Kinesis does not know the credentials."""


class StreamNotFoundError(KinesisRejectedError):
    """The stream, or a shard of it, does not exist (any more)."""


class ThrottledError(KinesisError, RetryLaterError):
    """A read limit of the shard or the account is used up; it is shared with other consumers."""


class KinesisUnavailableError(KinesisError, RetryLaterError):
    """A server error, a timeout, a broken connection, or what is no answer of Kinesis at all, as a proxy's page."""


class KinesisAnswerError(KinesisError, PermanentError):
    """An answer that Kinesis's API does not allow, several times over: a field missing or of another type, records out
    of order. Nothing of it was used."""

    @classmethod
    def of(cls, where: str, what: str) -> KinesisAnswerError:
        return cls(
            f"{where}: an answer that makes no sense: {what}. See what answers in Kinesis's place "
            "(spec.source.kinesis.endpoint, AWS_ENDPOINT_URL, a proxy). Nothing of it was used."
        )

    def reading(self, shard_id: str, place: str) -> KinesisAnswerError:
        """The same error with the shard, and where it was read."""
        return KinesisAnswerError(f"{shard_id}, read {place}: {self}")


class ExpiredIteratorError(KinesisError, RetryLaterError):
    """A shard iterator was not used for five minutes; a new one from the same place will do. Or the token of a
    listing's next page was not, and a new listing will."""


class RegistryError(LakeStreamError):
    """The Glue Schema Registry refused a request, or did not answer."""


class RegistryDeniedError(RegistryError, AccessDeniedError):
    """A right on the registry is missing, or AWS does not know the credentials."""


class RegistryUnavailableError(RegistryError, RetryLaterError):
    """A server error, throttling, a timeout, a broken connection."""
