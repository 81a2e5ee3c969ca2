"""Whose a table is: the checkpoint that writes it, in an object beside the data.

A driver undoes what it finds unfinished in its table. If two checkpoints wrote one table, each would undo the batch
that the other one is writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lakestream.errors import CorruptLogError, TableGoneError, TableOwnedError
from lakestream.log.store import ObstoreLogStore, claim
from lakestream.model.codec import decode, encode
from lakestream.storage import ObjectNotFoundError, StoreSettings, exists

KEY = "owner"
"""Of the object; no name that a query for JSON files might match."""

_MEND = (
    "Bring the table back (from versions of the bucket, or a copy); or delete the checkpoint as well, with all that is "
    "left of the table, to read the stream again from spec.source.kinesis.startingPosition."
)


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


@dataclass(frozen=True, slots=True)
class TableClaim:
    """A driver's claim to the table that it writes."""

    table: StoreSettings
    place: StoreSettings
    """Of the object, below the table."""
    owner: Owner
    proofs: tuple[str, ...] = ()
    """Objects of which every such table has one, by their path in it."""

    def take(self, *, wrote: bool) -> None:
        """Write down whose the table is, if nobody has yet: it is new, or from a release that did not do so.

        Args:
            wrote: whether the checkpoint says that the table has been written.

        Raises:
            TableGoneError: it has been written, and there is nothing, or not what says what it is.
            TableOwnedError: it is somebody else's.
            CorruptLogError: the object says nothing sensible.
        """
        found: Owner | None = None
        try:
            found = read_owner(self.place)
        except ObjectNotFoundError as error:
            if wrote and not ObstoreLogStore.at(self.table).list(""):
                raise self._gone() from error
        if found is not None:
            self._require(found)
        if wrote:
            self._require_proof()
        if found is None and not claim(ObstoreLogStore.at(self.place), KEY, _encode(self.owner)):
            self._require(read_owner(self.place))

    def check(self) -> None:
        """Look whether the table is still there, and the owner's. One GET request.

        Raises:
            TableGoneError: it was deleted.
            TableOwnedError: it was deleted, and somebody else has made another one there.
        """
        try:
            found = read_owner(self.place)
        except ObjectNotFoundError as error:
            raise self._gone() from error
        self._require(found)

    def _require_proof(self) -> None:
        # The first once more: it may have been written anew since, and its copy deleted.
        if self.proofs and not any(exists(self.table, key) for key in (*self.proofs, self.proofs[0])):
            raise TableGoneError(
                f"the table {self.table.path} has no {self.proofs[0]} any more: it was deleted in part, and the "
                f"checkpoint {self.owner.place} goes on behind the records that it had. Nothing is written. {_MEND}"
            )

    def _require(self, found: Owner) -> None:
        if found.checkpoint != self.owner.checkpoint:
            raise TableOwnedError(
                f"the table belongs to the {found} at {found.place}, as {self.place.path / KEY} says; this is the "
                f"{self.owner} at {self.owner.place}. Two that write one table undo each other's batches: give this "
                "one another path. If the other one is to write no more, or its checkpoint was deleted to begin anew, "
                "delete the table as well; or, to add to it, that object (records that are read a second time may then "
                "be there twice)."
            )

    def _gone(self) -> TableGoneError:
        return TableGoneError(
            f"the table {self.table.path} was deleted, {self.place.path / KEY} with it, and the checkpoint "
            f"{self.owner.place} goes on behind the records that it had. Nothing more is written. {_MEND}"
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
