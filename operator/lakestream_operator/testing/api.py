"""An API server in memory: versions, preconditions, and its moods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from lakestream_operator.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    OperatorError,
    RetryLaterError,
)
from lakestream_operator.model import Kind, Manifest, Reference

Object = dict[str, Any]
_Json = TypeVar("_Json")


class Mood(Enum):
    """How the API server takes requests about a kind."""

    WELL = "does them"
    REFUSES = "403 to each write, as by a quota, a policy or a missing right"
    OVERLOADED = "503 to all"
    HANGS = "does nothing, and never answers"
    SWALLOWS = "does it, and never answers"


@dataclass(slots=True)
class ModelApi:
    """The requests of a `KubeClient`, on objects in memory."""

    clock: Callable[[], datetime]
    objects: dict[Reference, Object] = field(default_factory=dict)
    moods: dict[Kind, Mood] = field(default_factory=dict)
    requests: list[tuple[str, Reference]] = field(default_factory=list)
    """Verb and object of each one."""
    lacks: set[str] = field(default_factory=set)
    """Fields of a SparkApplication's driver and executors that its definition does not have."""
    _version: int = 0

    # The requests.

    async def get(self, reference: Reference) -> Object:
        return self._answer("get", reference, lambda: self._found(reference))

    async def list_all(self, kind: Kind, namespace: str | None) -> list[Object]:
        found = [one for one in self.objects if one.kind is kind and namespace in (None, one.namespace)]
        return [_sent(self.objects[one]) for one in found]

    async def create(self, manifest: Manifest) -> Object:
        reference = Reference.of(manifest)

        def created() -> Object:
            if reference in self.objects:
                raise ConflictError(409, f"{reference} already exists")
            made = self.admit(manifest)
            for part in ("driver", "executor"):
                for name in self.lacks & made.get("spec", {}).get(part, {}).keys():
                    del made["spec"][part][name]
            return made

        return self._answer("create", reference, created)

    async def apply(self, manifest: Manifest) -> Object:
        reference = Reference.of(manifest)
        uid = manifest["metadata"].get("uid")

        def applied() -> Object:
            live = self.objects.get(reference)
            if live is None and uid:
                raise ConflictError(409, f"uid mismatch: {uid} was given, and no object was found")
            if live is None:
                return self.admit(manifest)
            if uid and uid != live["metadata"]["uid"]:
                raise InvalidError(422, "metadata.uid: field is immutable")
            before = _sent(live)
            _merge(live, manifest)
            if live != before:
                self.touch(live)
            return live

        return self._answer("apply", reference, applied)

    async def merge(self, reference: Reference, patch: Manifest, subresource: str = "") -> Object:
        def merged() -> Object:
            live = self._found(reference)
            metadata = patch.get("metadata", {})
            if metadata.get("uid", live["metadata"]["uid"]) != live["metadata"]["uid"]:
                raise ConflictError(409, f"{reference} is another one")
            version = metadata.get("resourceVersion")
            if version and version != live["metadata"]["resourceVersion"]:
                raise ConflictError(409, f"{reference} has changed")
            _merge(live, patch)
            self.touch(live)
            return live

        return self._answer(f"merge {subresource}".strip(), reference, merged)

    async def delete(self, reference: Reference, uid: str) -> Object:
        def deleted() -> Object:
            live = self._found(reference)
            if live["metadata"]["uid"] != uid:
                raise ConflictError(409, f"{reference} is another one")
            self.remove(reference)
            return self.objects.get(reference, {"kind": "Status"})

        return self._answer("delete", reference, deleted)

    # What others do.

    def admit(self, manifest: Manifest) -> Object:
        """Take in a new object."""
        made = _sent(dict(manifest))
        self._version += 1
        made["metadata"] |= {
            "uid": f"uid-{self._version}",
            "generation": 1,
            "resourceVersion": str(self._version),
            "creationTimestamp": self.clock().isoformat(),
        }
        self.objects[Reference.of(made)] = made
        return made

    def touch(self, manifest: Object) -> None:
        """Something of it has changed."""
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)

    def remove(self, reference: Reference) -> None:
        """Delete an object; a pod is gone once its processes are, others once they have no finalizers."""
        live = self.objects[reference]
        if "deletionTimestamp" in live["metadata"] and (
            reference.kind is Kind.Pod or live["metadata"].get("finalizers")
        ):
            return  # once more changes nothing
        if reference.kind is Kind.Pod or live["metadata"].get("finalizers"):
            live["metadata"].setdefault("deletionTimestamp", self.clock().isoformat())
            self.touch(live)
        else:
            del self.objects[reference]

    def _found(self, reference: Reference) -> Object:
        if reference not in self.objects:
            raise NotFoundError(404, f"{reference} not found")
        return self.objects[reference]

    def _answer(self, verb: str, reference: Reference, effect: Callable[[], Object]) -> Object:
        self.requests.append((verb, reference))
        mood = self.moods.get(reference.kind, Mood.WELL)
        refusal: OperatorError | None = None
        if mood is Mood.REFUSES and verb != "get":
            refusal = ForbiddenError(403, f"{reference} is forbidden: exceeded quota: small")
        elif mood in (Mood.OVERLOADED, Mood.HANGS):
            refusal = RetryLaterError(f"{verb} {reference}: {mood.value}")
        if refusal is not None:
            raise refusal
        answer = _sent(effect())
        if mood is Mood.SWALLOWS:
            raise RetryLaterError(f"{verb} {reference}: {mood.value}")
        return answer


def _sent(value: _Json) -> _Json:
    """As it comes out at the other end of the wire."""
    received: _Json = value if isinstance(value, str) else json.loads(json.dumps(value))
    return received


def _merge(live: Object, wanted: Mapping[str, Any]) -> None:
    for key, value in wanted.items():
        if isinstance(value, Mapping) and isinstance(live.get(key), dict):
            _merge(live[key], value)
        else:
            live[key] = _sent(value)
