"""Whether two LakeStreams name one place: of two that wrote one table, each would undo the other's batches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from lakestream_api import InvalidDocumentError, LakeStream
from lakestream_api.fields import comparable
from lakestream_operator.model import Stream
from lakestream_operator.render import plan_of, wanted_of


@dataclass(frozen=True, slots=True)
class Place:
    """A folder on S3 that a writer has for itself; one in a pod is that pod's own."""

    field: str
    """Of the spec, for a person."""
    what: str
    location: str
    folder: str
    """To be compared: one that lies in another begins with it."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A LakeStream, and what it names."""

    namespace: str
    name: str
    age: tuple[str, str]
    """Earlier ones first; of two of one second, any, but always the same."""
    places: tuple[Place, ...]


def claimant_of(stream: Stream) -> Claimant:
    """A LakeStream's claims; one whose spec cannot be read makes none."""
    try:
        places = places_of(wanted_of(stream).stream)
    except InvalidDocumentError:
        places = ()
    created = stream.manifest["metadata"].get("creationTimestamp", "")
    return Claimant(stream.namespace, stream.name, (created, stream.uid), places)


def held_in(documents: Iterable[str | None]) -> frozenset[str]:
    """Folders of the places that drivers with these documents have."""
    folders: set[str] = set()
    for document in filter(None, documents):
        with suppress(InvalidDocumentError):
            folders.update(place.folder for place in places_of(plan_of(document).stream))
    return frozenset(folders)


def places_of(stream: LakeStream) -> tuple[Place, ...]:
    """All places that a LakeStream's writers write."""
    spec = stream.spec
    places = []
    for index, writer in enumerate(spec.writers):
        kind = "json" if writer.hudi is None else "hudi"
        table = (f"spec.writers[{index}].{kind}.path", f"the table of writer {writer.name}", writer.output.path)
        log = ("spec.checkpoint", f"the checkpoint of writer {writer.name}", f"{spec.checkpoint}/{writer.name}")
        places += [Place(*one, comparable(one[2])) for one in (table, log) if one[2].startswith("s3")]
    return tuple(places)


def rivals(me: Claimant, others: Iterable[Claimant]) -> tuple[Claimant, ...]:
    """Those of the others that name a place in one of its own, or one that holds it."""
    return tuple(other for other in others if any(_shared(me, other)))


def contested(me: Claimant, others: Iterable[Claimant], held_by: Callable[[Claimant], frozenset[str]]) -> str:
    """What a LakeStream names that is another one's; or empty.

    A place is his whose drivers have it already, in a document that they were given; else his who is older.

    Args:
        me: the LakeStream.
        others: all others.
        held_by: folders of the places that somebody's drivers have.
    """
    problems = []
    for other in others:
        for mine, how, theirs in _shared(me, other):
            if not _is_first(me, mine, other, theirs, held_by):
                problems.append(
                    f"{mine.field}: {mine.location} {how} {theirs.what} of the LakeStream "
                    f"{other.namespace}/{other.name}, {theirs.location}. Give each a folder of its own; "
                    "this one is not started there."
                )
    return " ".join(problems)


def _shared(me: Claimant, other: Claimant) -> Iterator[tuple[Place, str, Place]]:
    """Places of both that are one, or of which one lies in the other."""
    for mine, theirs in product(me.places, other.places):
        if mine.folder.startswith(theirs.folder):
            yield mine, "is" if mine.folder == theirs.folder else "lies in", theirs
        elif theirs.folder.startswith(mine.folder):
            yield mine, "holds", theirs


def _is_first(
    me: Claimant, mine: Place, other: Claimant, theirs: Place, held_by: Callable[[Claimant], frozenset[str]]
) -> bool:
    i_hold, they_hold = mine.folder in held_by(me), theirs.folder in held_by(other)
    return i_hold if i_hold != they_hold else me.age < other.age
