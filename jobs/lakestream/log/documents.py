"""Which driver is to carry out what was asked for with a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from lakestream.log.fence import newest_epoch
from lakestream.log.layout import BATCHES, unpack
from lakestream.log.store import LogStore
from lakestream.model import BatchPlan, Definition
from lakestream.storage import ObjectNotFoundError


@dataclass(frozen=True, slots=True)
class Document:
    """What somebody had in hand who asked, and what the writer's driver had by then."""

    definition: str = ""
    """Digest of the definition that it asks for; empty: any."""
    epoch: int = 0
    """Of the newest driver."""
    instead_of: str = ""
    """Digest of the definition of the newest plan, if the document was edited since; empty: it was not, or nobody
    knows."""

    @classmethod
    def given(cls, store: LogStore, definition: Definition | None) -> Self:
        """A document of this definition, given now; None: none was.

        Raises:
            CorruptLogError, StorageError, StorageUnavailableError: of the checkpoint.
        """
        epoch = newest_epoch(store)
        if definition is None:
            return cls(epoch=epoch)
        newest = newest_definition(store)
        if newest is None or newest.digest == definition.digest:
            return cls(definition.digest, epoch)
        if newest.differs_in_document(definition):
            return cls(definition.digest, epoch, newest.digest)
        # Who asks has another release, which makes rows by other rules of the same document. That is no reason to wait,
        # and the driver that runs has another digest: that of its release, which may have planned nothing yet.
        return cls(epoch=epoch)

    def is_for(self, definition: str, epoch: int) -> bool:
        """Whether a driver is to carry it out: one with the same definition; or one that took over since, unless it was
        only started anew with the document from before the edit.

        Args:
            definition: digest of the driver's.
            epoch: of the driver.
        """
        if self.definition in ("", definition):
            return True
        return epoch > self.epoch and definition != self.instead_of

    def to_fields(self) -> dict[str, Any]:
        return {"definition": self.definition, "epoch": self.epoch, "insteadOf": self.instead_of}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        # Earlier releases did not say what the document was edited from.
        return cls(fields["definition"], fields["epoch"], fields.get("insteadOf", ""))


def newest_definition(store: LogStore) -> Definition | None:
    """That of the newest plan: what the newest driver goes by, once it has planned anything; None: nobody knows.

    Raises:
        CorruptLogError, StorageError, StorageUnavailableError: of the checkpoint.
    """
    if not (plans := store.list(BATCHES)):
        return None
    try:
        return unpack(plans[-1], store.get(plans[-1]), BatchPlan.from_json).definition
    except ObjectNotFoundError:  # expired meanwhile
        return None
