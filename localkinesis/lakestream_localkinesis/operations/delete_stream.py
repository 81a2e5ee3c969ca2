"""DeleteStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.stream import StreamStatus
from lakestream_localkinesis.errors import ResourceInUseException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def delete_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Delete an ACTIVE or CREATING stream with all it holds."""
    name = fields.stream_name(account)
    enforced = fields.boolean("EnforceConsumerDeletion")
    fields.check()
    stream = account.stream(name, now_ms)
    if stream.status is not StreamStatus.CREATING:
        # One that is not there yet may go at once.
        stream = account.active_stream(name, now_ms)
    if stream.consumers and not enforced:
        raise ResourceInUseException(
            f"Stream {name} under account {account.settings.id} has registered consumers: "
            "EnforceConsumerDeletion deletes them with it."
        )
    account.delete(stream, now_ms)
    return {}
