"""Whether records can be pushed to the consumer that a document names."""

from __future__ import annotations

from collections.abc import Callable

from lakestream.errors import SettingsError, StreamNotFoundError
from lakestream.kinesis.port import Consumer


def require_consumer(arn: str, stream_arn: str, describe: Callable[[str], Consumer], field: str) -> None:
    """Refuse a consumer that is not there, or is of another stream. One that is being made will be there: until then
    records are asked for.

    Args:
        arn: of the consumer.
        stream_arn: of what is read.
        describe: asks Kinesis for a consumer.
        field: of the document, that names it.

    Raises:
        SettingsError: with the field, and what to do.
        KinesisDeniedError: Kinesis does not say.
    """
    try:
        consumer = describe(arn)
    except StreamNotFoundError as error:
        raise SettingsError(
            f"{field}: Kinesis knows no consumer {arn}. Register one, as by `aws kinesis register-stream-consumer "
            f"--stream-arn {stream_arn} --consumer-name NAME`, and write its ARN; or leave the field out."
        ) from error
    if consumer.status == "DELETING":
        raise SettingsError(f"{field}: the consumer {arn} is being deregistered. Register another one.")
    if consumer.stream_arn != stream_arn:
        raise SettingsError(f"{field}: the consumer {arn} is of {consumer.stream_arn}, and {stream_arn} is read")
