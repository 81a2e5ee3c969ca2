"""The document that a driver is given, and its fingerprint: the one thing that decides on a restart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from lakestream_api import LakeStream, Writer, WriterNames, load_lakestream, load_lakestream_object
from lakestream_api.names import API_VERSION, GROUP, KIND
from lakestream_operator.model import Stream

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

    @property
    def names(self) -> WriterNames:
        return WriterNames(self.stream.metadata.name, self.writer.name)


def document_of(stream: LakeStream, writer: Writer, restart: str) -> str:
    """The document for one writer.

    Defaults are left out: a newer operator with more fields, or other defaults, writes the same text for the same
    LakeStream, and so restarts nothing.
    """
    whole = stream.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (written,) = (one for one in whole["spec"]["writers"] if one["name"] == writer.name)
    spec: dict[str, Any] = {name: value for name, value in whole["spec"].items() if name not in _NO_RESTART}
    spec["writers"] = [written]
    spec["source"]["kinesis"].pop("shards", None)
    spec.get("quarantine", {}).pop("warnFraction", None)
    if not spec.get("quarantine"):
        spec.pop("quarantine", None)
    metadata: dict[str, Any] = {"name": stream.metadata.name}
    if stream.metadata.namespace:
        metadata["namespace"] = stream.metadata.namespace
    if restart:
        metadata["annotations"] = {RESTART_ANNOTATION: restart}
    document = {"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": metadata, "spec": spec}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def is_restart(before: str | None, document: str) -> bool:
    """Whether a document says what the one before did, but for the annotation that asks for a restart."""
    return before is not None and _without_restart(before) == _without_restart(document)


def _without_restart(document: str) -> Any:
    said = yaml.safe_load(document)
    said["metadata"].pop("annotations", None)
    return said


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a LakeStream asks for."""

    stream: LakeStream
    plans: Mapping[str, Plan]
    """By writer."""


def wanted_of(stream: Stream) -> Wanted:
    """Read a LakeStream's spec.

    Raises:
        InvalidDocumentError: with all that is wrong with it.
    """
    names = {"name": stream.name, "namespace": stream.namespace}
    manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": names, "spec": stream.manifest.get("spec")}
    return _wanted(json.dumps(manifest), stream.restart)


# Each cycle asks, and hardly ever is the answer another one than the last time.
@lru_cache(maxsize=4096)
def _wanted(manifest: str, restart: str) -> Wanted:
    stream = load_lakestream_object(json.loads(manifest))
    plans = {writer.name: plan_of(document_of(stream, writer, restart)) for writer in stream.spec.writers}
    return Wanted(stream, plans)


@lru_cache(maxsize=8192)
def plan_of(document: str) -> Plan:
    """The plan that a document makes.

    Raises:
        InvalidDocumentError: it is not one of `document_of`, or of an operator that knew other fields.
    """
    stream = load_lakestream(document)
    said = json.dumps(yaml.safe_load(document), sort_keys=True, default=str)
    fingerprint = hashlib.sha256(said.encode()).hexdigest()[:16]
    return Plan(document, fingerprint, stream, stream.spec.writers[0])
