"""Whether two LakeStreams name one place: of two that wrote one table, each would undo the other's batches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from lakestream_api import InvalidDocumentError, LakeStream, lakestreams_in
from lakestream_api.fields import comparable
from lakestream_operator.model import Stream, WriterSeen
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
    """A LakeStream, what it names, and what its drivers have."""

    namespace: str
    name: str
    age: tuple[str, str]
    """Earlier ones first; of two of one second, any, but always the same."""
    places: tuple[Place, ...]
    """That its spec names; none if that cannot be read."""
    given: tuple[Place, ...] = ()
    """That its drivers were given, by their documents, though there may be none of them now: it was there first."""
    driven: tuple[Place, ...] = ()
    """The same of drivers that there are or will be again: they write there also if the spec does not name that any
    more."""
    there: tuple[Place, ...] = ()
    """The same of drivers that there are now, or were until their restart."""
    goes_on: bool = True
    """Whether a driver that ends is started again."""
    goes_back: bool = False
    """Whether it is started with the last document that was good, should the one that it was given never run."""

    @property
    def claims(self) -> tuple[Place, ...]:
        """All that nobody else may be started on."""
        named = {place.folder for place in self.places}
        return *self.places, *(place for place in self.driven if place.folder not in named)

    def having(self, writers: Iterable[WriterSeen]) -> Claimant:
        """The same one, with these drivers."""
        given: list[Place] = []
        driven: list[Place] = []
        there: list[Place] = []
        for seen in writers:
            places = _places_in(seen.document) + (_places_in(seen.good) if self.goes_back else ())
            given += places
            driven += places if self.goes_on or seen.has_driver else ()
            there += _places_in(seen.document) if seen.has_driver else ()
        return replace(self, given=tuple(given), driven=tuple(driven), there=tuple(there))

    def starting(self, places: tuple[Place, ...]) -> Claimant:
        """The same one, with drivers that were asked for on these places and may not be known yet."""
        given, driven, there = ((*some, *places) for some in (self.given, self.driven, self.there))
        return replace(self, given=given, driven=driven, there=there)

    def after(self, before: Claimant) -> Claimant:
        """The same one, who has not let go of what its drivers had a moment ago only because they are restarted."""
        if not self.goes_on:
            return self
        given, there = ({place.folder for place in some} for some in (self.given, self.there))
        kept = (place for place in before.there if place.folder in given - there)
        return replace(self, there=(*self.there, *kept))

    def hold_on(self, place: Place) -> tuple[bool, bool]:
        """Whether drivers of it have that place now, and whether they were given it; what is more compares as more."""
        there, given = (any(place.folder == one.folder for one in some) for some in (self.there, self.given))
        return there, given


def claimant_of(stream: Stream, writers: Iterable[WriterSeen] = ()) -> Claimant:
    """A LakeStream's claims.

    Args:
        stream: it.
        writers: what there is of its writers, also of those that it has no more.
    """
    created, writers = stream.manifest["metadata"].get("creationTimestamp", ""), tuple(writers)
    if stream.deleting and not stream.finalizing and not any(seen.has_driver for seen in writers):
        # It is drained, and there for others' finalizers alone.
        return Claimant(stream.namespace, stream.name, (created, stream.uid), places=(), goes_on=False)
    try:
        wanted = wanted_of(stream).stream
        places, goes_back = places_of(wanted), wanted.spec.rollback
    except InvalidDocumentError:
        places, goes_back = (), False
    goes_on = not (stream.suspended or stream.deleting)
    made = Claimant(stream.namespace, stream.name, (created, stream.uid), places, goes_on=goes_on, goes_back=goes_back)
    return made.having(writers)


def _places_in(document: str | None) -> tuple[Place, ...]:
    """Those that a driver with that document writes."""
    if not document:
        return ()
    try:
        return places_of(plan_of(document).stream)
    except InvalidDocumentError:
        return _places_said(document)


def _places_said(document: str) -> tuple[Place, ...]:
    """The same of a document that is refused: it may be of a release that took it, and its driver runs."""
    places: list[Place] = []
    with suppress(InvalidDocumentError):
        spec = _mapping(lakestreams_in(document)[0].get("spec"))
        writers = spec.get("writers")
        for index, one in enumerate(map(_mapping, writers if isinstance(writers, list) else ())):
            kind = "hudi" if "hudi" in one else "json"
            path = _mapping(one.get(kind)).get("path")
            places += _places_at(index, kind, one.get("name"), path, spec.get("checkpoint"))
    return tuple(places)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def places_of(stream: LakeStream) -> tuple[Place, ...]:
    """All places that a LakeStream's writers write."""
    spec = stream.spec
    places: list[Place] = []
    for index, writer in enumerate(spec.writers):
        kind = "json" if writer.hudi is None else "hudi"
        places += _places_at(index, kind, writer.name, writer.output.path, spec.checkpoint)
    return tuple(places)


def _places_at(index: int, kind: str, name: object, path: object, checkpoint: object) -> Iterator[Place]:
    """Those of one writer, as far as they are texts."""
    if isinstance(path, str):
        yield from _place(f"spec.writers[{index}].{kind}.path", f"the table of writer {name}", path)
    if isinstance(checkpoint, str) and isinstance(name, str):
        yield from _place("spec.checkpoint", f"the checkpoint of writer {name}", f"{checkpoint}/{name}")


def _place(field: str, what: str, location: str) -> Iterator[Place]:
    if location.startswith("s3"):
        yield Place(field, what, location, comparable(location))


def rivals(me: Claimant, others: Iterable[Claimant]) -> tuple[Claimant, ...]:
    """Those of the others that claim a place in one that it claims, or one that holds it."""
    return tuple(other for other in others if any(_shared(me.claims, other)))


def contested(me: Claimant, others: Iterable[Claimant]) -> str:
    """What a LakeStream names that is another one's; or empty.

    A place is his whose drivers have it; else his whose drivers were given it; else his who is older.

    Args:
        me: the LakeStream.
        others: all others, or at least its `rivals`.
    """
    problems = []
    for other in others:
        for mine, how, theirs in _shared(me.places, other):
            if not _is_first(me, mine, other, theirs):
                problems.append(
                    f"{mine.field}: {mine.location} {how} {theirs.what} of the LakeStream "
                    f"{other.namespace}/{other.name}, {theirs.location}. Give each a folder of its own; "
                    "this one is not started there."
                )
    return " ".join(problems)


def taken(me: Claimant, others: Iterable[Claimant]) -> frozenset[str]:
    """Folders that drivers of a LakeStream were given and are another one's by now, as if it was suspended meanwhile:
    no driver is started on its document again, whatever the spec says. Arguments as of `contested`."""
    shared = ((mine, other, theirs) for other in others for mine, _, theirs in _shared(me.driven, other))
    return frozenset(mine.folder for mine, other, theirs in shared if not _is_first(me, mine, other, theirs))


def _shared(some: Iterable[Place], other: Claimant) -> Iterator[tuple[Place, str, Place]]:
    """What of some places and another one's claims is one place, or of which one lies in the other."""
    for mine, theirs in product(some, other.claims):
        if mine.folder.startswith(theirs.folder):
            yield mine, "is" if mine.folder == theirs.folder else "lies in", theirs
        elif theirs.folder.startswith(mine.folder):
            yield mine, "holds", theirs


def _is_first(me: Claimant, mine: Place, other: Claimant, theirs: Place) -> bool:
    i_hold, they_hold = me.hold_on(mine), other.hold_on(theirs)
    return i_hold > they_hold if i_hold != they_hold else me.age < other.age
