"""What a checkpoint belongs to: one incarnation of one stream, and the settings that its table was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID, uuid4

from lakestream.errors import CorruptLogError, IdentityMismatchError, StreamRecreatedError
from lakestream.log.layout import BATCHES, COMMITS, IDENTITY, MANIFESTS
from lakestream.log.store import LogStore, claim
from lakestream.model.codec import decode, encode, require_utc, required_time, time_to_json
from lakestream.storage import ObjectNotFoundError

Setting: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True)
class Identity:
    """What a driver is about to work for."""

    stream_arn: str
    stream_created_at: datetime
    """Tells a stream from another one of the same name, created after this one was deleted."""
    settings: Mapping[str, Setting]
    """The writer's immutable settings by their path in the document, e.g. `hudi.recordKey`."""

    def __post_init__(self) -> None:
        require_utc("stream_created_at", self.stream_created_at)


def claim_identity(store: LogStore, identity: Identity) -> UUID:
    """Write the identity of a new checkpoint, or check that of an existing one; the checkpoint's UUID.

    Raises:
        StreamRecreatedError: the stream is another one of the same name.
        IdentityMismatchError: the checkpoint belongs to something else; the message lists what differs.
        CorruptLogError: there are plans or commits, and nothing says whose.
    """
    _require_whole(store)
    checkpoint = uuid4()
    if claim(store, IDENTITY, _encode(identity, checkpoint)):
        return checkpoint
    try:
        found, checkpoint = decode("identity", store.get(IDENTITY), _build)
    except CorruptLogError as error:
        raise CorruptLogError(f"{IDENTITY}: {error}") from error
    _require_same(found, identity)
    return checkpoint


def require_stream(store: LogStore, arn: str, created_at: datetime) -> None:
    """Check that a checkpoint is of this stream, if it is of any by now.

    Raises:
        StreamRecreatedError, IdentityMismatchError, CorruptLogError: as `claim_identity`.
    """
    if not _exists(store, IDENTITY):
        return
    found, _ = decode("identity", store.get(IDENTITY), _build)
    _require_same(found, Identity(arn, created_at, found.settings))


def _require_whole(store: LogStore) -> None:
    """A log without its identity is not claimed anew: its positions may be of another stream, or of another table."""
    if _exists(store, IDENTITY):
        return
    found = next((keys for folder in (COMMITS, BATCHES, MANIFESTS) if (keys := store.list(folder))), None)
    # The first driver may have begun in between.
    if found and not _exists(store, IDENTITY):
        raise CorruptLogError(
            f"the checkpoint has {found[-1]}, and no {IDENTITY}, which says what stream and table it is of. Bring "
            "that object back (from a version of the bucket, or a copy); or give another spec.checkpoint and another "
            "path, to begin anew."
        )


def _exists(store: LogStore, key: str) -> bool:
    try:
        store.get(key)
    except ObjectNotFoundError:
        return False
    return True


def _require_same(old: Identity, new: Identity) -> None:
    if old.stream_arn != new.stream_arn:
        raise IdentityMismatchError(
            f"the checkpoint belongs to the stream {old.stream_arn}, not to {new.stream_arn}. "
            "Set spec.source.kinesis back, or give another spec.checkpoint for the other stream."
        )
    if old.stream_created_at != new.stream_created_at:
        raise StreamRecreatedError.of(new.stream_arn, old.stream_created_at, new.stream_created_at)
    changed = [
        f"{name}: was {_show(old.settings.get(name))}, now {_show(new.settings.get(name))}"
        for name in sorted({*old.settings, *new.settings})
        if old.settings.get(name) != new.settings.get(name)
    ]
    if changed:
        raise IdentityMismatchError(
            "settings that cannot change after the first start were changed: "
            + "; ".join(changed)
            + ". Set them back; or, to write a new table, give another path and another spec.checkpoint."
        )


def _show(value: Setting | None) -> str:
    match value:
        case None:
            return "not set"
        case str():
            return repr(value)
        case _:
            return f"[{', '.join(value)}]"


def _encode(identity: Identity, checkpoint: UUID) -> bytes:
    return encode(
        "identity",
        {
            "checkpoint": str(checkpoint),
            "streamArn": identity.stream_arn,
            "streamCreatedAt": time_to_json(identity.stream_created_at),
            "settings": dict(identity.settings),
        },
    )


def _build(fields: dict[str, Any]) -> tuple[Identity, UUID]:
    settings = {
        name: value if isinstance(value, str) else tuple(str(part) for part in value)
        for name, value in fields["settings"].items()
    }
    identity = Identity(fields["streamArn"], required_time(fields["streamCreatedAt"]), settings)
    return identity, UUID(fields["checkpoint"])
