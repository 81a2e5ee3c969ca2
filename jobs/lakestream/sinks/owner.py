"""Whose a table is: the checkpoint that writes it, in an object beside the data.

A driver undoes what it finds unfinished in its table. If two checkpoints wrote one table, each would undo the batch
that the other one is writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lakestream.errors import CorruptLogError, TableOwnedError
from lakestream.log.store import ObstoreLogStore, claim
from lakestream.model.codec import decode, encode
from lakestream.storage import StoreSettings

KEY = "owner"
"""Of the object; no name that a query for JSON files might match."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A writer's checkpoint. Its UUID alone decides; all else is for people."""

    checkpoint: UUID
    place: str
    """Where the checkpoint is."""
    lakestream: str
    """Namespace, if it has one, and name: `lake/orders`."""
    writer: str

    def __str__(self) -> str:
        return f"writer {self.writer} of the LakeStream {self.lakestream}, with the checkpoint {self.checkpoint}"


def claim_table(place: StoreSettings, owner: Owner) -> None:
    """Write down whose a table is, if nobody has yet: it is new, or from a release that did not do so.

    Args:
        place: of the object, below the table.
        owner: who claims it.

    Raises:
        TableOwnedError: it is somebody else's.
        CorruptLogError: the object says nothing sensible.
    """
    store = ObstoreLogStore.at(place)
    if claim(store, KEY, _encode(owner)):
        return
    found = read_owner(place)
    if found.checkpoint != owner.checkpoint:
        raise TableOwnedError(
            f"the table belongs to the {found} at {found.place}, as {place.path / KEY} says; this is the {owner} at "
            f"{owner.place}. Two that write one table undo each other's batches: give this one another path. If the "
            "other one is to write no more, or its checkpoint was deleted to begin anew, delete the table as well; or, "
            "to add to it, that object (records that are read a second time may then be there twice)."
        )


def read_owner(place: StoreSettings) -> Owner:
    """Whose the table is.

    Args:
        place: of the object, below the table.

    Raises:
        ObjectNotFoundError: nobody has claimed it.
        CorruptLogError: the object says nothing sensible.
    """
    try:
        return decode("owner", ObstoreLogStore.at(place).get(KEY), _build)
    except CorruptLogError as error:
        raise CorruptLogError(f"{place.path / KEY}: {error}") from error


def _encode(owner: Owner) -> bytes:
    return encode(
        "owner",
        {
            "checkpoint": str(owner.checkpoint),
            "place": owner.place,
            "lakestream": owner.lakestream,
            "writer": owner.writer,
        },
    )


def _build(fields: dict[str, Any]) -> Owner:
    return Owner(UUID(fields["checkpoint"]), fields["place"], fields["lakestream"], fields["writer"])
