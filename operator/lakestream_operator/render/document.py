"""The document that a driver is given, and its fingerprint: the one thing that decides on a restart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from lakestream_api import (
    InvalidDocumentError,
    LakeStream,
    Problem,
    Quarantine,
    Scaling,
    Source,
    Writer,
    WriterNames,
    lakestreams_in,
    load_lakestream,
    load_lakestream_object,
    load_scaling,
    unknown_fields,
)
from lakestream_api.names import API_VERSION, GROUP, KIND
from lakestream_operator.model import Stream
from lakestream_operator.render.former import FORMER_DEFAULTS, completed, value_at, without

RESTART_ANNOTATION = f"{GROUP}/restart"
"""On a LakeStream: any new value restarts its drivers at the end of their batch."""

_NO_RESTART = ("scaling", "suspend", "rollback")
"""Fields of the spec that running drivers need not know."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one writer is to run. Everything about it follows from its document."""

    document: str
    """YAML: the LakeStream with this one writer, and without what needs no restart."""
    fingerprint: str
    """Hash of what the document says."""
    stream: LakeStream
    writer: Writer

    def __hash__(self) -> int:
        return hash(self.document)

    @property
    def names(self) -> WriterNames:
        return WriterNames(self.stream.metadata.name, self.writer.name)


def document_of(stream: LakeStream, writer: Writer, restart: str) -> str:
    """The document for one writer.

    Defaults are left out, though the API server writes them into specs: an operator with more fields writes the same
    text for the same LakeStream, and so restarts nothing. Fields of `FORMER_DEFAULTS` are always in it.
    """
    spec = stream.spec
    update = {name: type(spec).model_fields[name].default for name in _NO_RESTART} | {
        "writers": (writer,),
        "source": Source(kinesis=spec.source.kinesis.model_copy(update={"shards": None})),
        "quarantine": spec.quarantine.model_copy(update={"warn_fraction": Quarantine().warn_fraction}),
    }
    told = stream.model_copy(update={"spec": spec.model_copy(update=update)})
    document = told.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if restart:
        document["metadata"]["annotations"] = {RESTART_ANNOTATION: restart}
    every = told.model_dump(mode="json", by_alias=True)
    for path in FORMER_DEFAULTS:
        document = completed(document, path, value_at(every, path))
    return _text(document)


class _Dumper(yaml.SafeDumper):
    """YAML that says what it was made of, whatever characters are in it."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # Outside of double quotes this one is a line's end, and read as a blank.
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if "\x85" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)


def _text(document: Any) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _said(document: str) -> Any:
    """What a valid document says, as JSON: somebody may have written dates or numbers into it, also as keys."""
    (said,) = lakestreams_in(document)
    return json.loads(json.dumps(said))


def _whole(said: Any) -> Any:
    """What a document says; one of an earlier release means that release's defaults by what it leaves out."""
    for path, former in FORMER_DEFAULTS.items():
        said = completed(said, path, former)
    return said


def hash_of(said: Any) -> str:
    """A short hash of what can be said as JSON."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def is_restart(before: str | None, document: str) -> bool:
    """Whether a document says what the one before did, but for the annotation that asks for a restart."""
    if before is None:
        return False
    try:
        plan_of(before)
    except InvalidDocumentError:
        return False  # somebody has changed it by hand
    return bool(_without_restart(before) == _without_restart(document))


def _without_restart(document: str) -> Any:
    said = _whole(_said(document))
    said["metadata"].pop("annotations", None)
    return said


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a LakeStream asks for."""

    stream: LakeStream
    plans: Mapping[str, Plan]
    """By writer."""
    unknown: tuple[str, ...] = ()
    """Fields that it has beside what is known here, as where the CRD is newer."""


def wanted_of(stream: Stream) -> Wanted:
    """Read a LakeStream's spec.

    Raises:
        InvalidDocumentError: with all that is wrong with it.
    """
    names = {"name": stream.name, "namespace": stream.namespace}
    manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": names, "spec": stream.manifest.get("spec")}
    try:
        text = json.dumps(manifest)
    except RecursionError as error:
        raise InvalidDocumentError([Problem("spec", "is nested too deeply")]) from error
    return _wanted(text, stream.restart)


def scaling_of(stream: Stream) -> Scaling | None:
    """How executors of what runs are to be scaled, whatever the rest of the spec says; none: that says nothing sensible
    either."""
    try:
        return load_scaling(stream.manifest)
    except InvalidDocumentError:
        return None


# Each cycle asks, and hardly ever is the answer another one than the last time.
@lru_cache(maxsize=4096)
def _wanted(manifest: str, restart: str) -> Wanted:
    served = json.loads(manifest)
    stream = load_lakestream_object(served)
    plans = {writer.name: plan_of(document_of(stream, writer, restart)) for writer in stream.spec.writers}
    return Wanted(stream, plans, unknown_fields(served))


@lru_cache(maxsize=8192)
def plan_of(document: str) -> Plan:
    """The plan that a document makes.

    Raises:
        InvalidDocumentError: it is not one of `document_of`, or of an operator that knew other fields.
    """
    stream = load_lakestream(document)
    said = _said(document)
    whole = _whole(said)
    if whole != said:
        document = _text(whole)
        stream = load_lakestream(document)
    for path, former in FORMER_DEFAULTS.items():
        whole = without(whole, path, former)
    return Plan(document, hash_of(whole), stream, stream.spec.writers[0])
