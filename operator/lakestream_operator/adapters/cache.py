"""What is known of the cluster: all objects of LakeStreams, kept up to date by watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from lakestream_api import WriterNames
from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.model import Kind, Manifest, Reference, WriterSeen
from lakestream_operator.observer import trim, writer_of

StreamKey = tuple[str, str]
"""Namespace and name of a LakeStream."""

_OURS = f"{STREAM_LABEL},app.kubernetes.io/managed-by={MANAGED_BY}"
WATCHED = {
    Kind.LakeStream: "",
    Kind.SparkApplication: _OURS,
    # Made by Spark, which is given the labels of the writer.
    Kind.Pod: _OURS,
    Kind.ConfigMap: _OURS,
    Kind.ServiceAccount: _OURS,
    Kind.RoleBinding: _OURS,
}
"""The kinds that are watched, and the label selector of those that `key_of` knows; LakeStreams are all looked after."""


def key_of(manifest: Manifest) -> StreamKey | None:
    """The LakeStream that an object is, or belongs to, by its labels; none: it is not ours."""
    metadata = manifest["metadata"]
    if manifest["kind"] == Kind.LakeStream.name:
        return metadata["namespace"], metadata["name"]
    labels = metadata.get("labels") or {}
    # As the selector has it, an empty value included: what is listed and never known would be taken for missed.
    ours = STREAM_LABEL in labels and labels.get("app.kubernetes.io/managed-by") == MANAGED_BY
    return (metadata["namespace"], labels[STREAM_LABEL]) if ours else None


@dataclass(slots=True)
class Cache:
    """All LakeStreams and the objects of their writers. Wakes whoever looks after a LakeStream when one changes."""

    wake: Callable[[StreamKey], None] = lambda _: None
    _objects: dict[StreamKey, dict[Reference, Manifest]] = field(default_factory=lambda: defaultdict(dict))
    _keys: dict[Reference, StreamKey] = field(default_factory=dict)

    def put(self, kind: Kind, manifest: Manifest) -> None:
        """Take in an object, unless that version of it or a newer one is known: answers to writes and watches race,
        and a write that changed nothing is no news."""
        metadata = manifest["metadata"]
        reference = Reference(kind, metadata["namespace"], metadata["name"])
        before = self._keys.get(reference)
        if before is not None and version_of(manifest) <= version_of(self._objects[before][reference]):
            return
        trimmed = trim(kind, manifest)
        key = key_of(trimmed)
        if before != key:
            # Somebody has given it another label, or none.
            self.remove(reference)
        if key is None:
            return
        self._objects[key][reference] = trimmed
        self._keys[reference] = key
        self.wake(key)

    def remove(self, reference: Reference, version: int | None = None) -> None:
        """Forget an object that is gone, by that version: what is newer is another one of the name."""
        key = self._keys.get(reference)
        if key is None:
            return
        objects = self._objects[key]
        if version is not None and version_of(objects[reference]) > version:
            return
        del objects[reference], self._keys[reference]
        if not objects:
            del self._objects[key]
        self.wake(key)

    def versions(self) -> dict[Reference, int]:
        """The version of each object that is known."""
        return {reference: version_of(self._objects[key][reference]) for reference, key in self._keys.items()}

    def lakestream(self, key: StreamKey) -> Manifest | None:
        """The LakeStream itself; none: it is gone, or not known yet."""
        return self._objects.get(key, {}).get(Reference(Kind.LakeStream, *key))

    def writers(self, key: StreamKey) -> dict[str, WriterSeen]:
        """All writers of a LakeStream that there are objects of."""
        by_writer: dict[str, list[Manifest]] = defaultdict(list)
        for reference, manifest in self._objects.get(key, {}).items():
            labels = manifest["metadata"].get("labels") or {}
            if reference.kind is not Kind.LakeStream and (writer := labels.get(WRITER_LABEL)):
                by_writer[writer].append(manifest)
        return {writer: writer_of(WriterNames(key[1], writer), found) for writer, found in by_writer.items()}

    def __len__(self) -> int:
        return len(self._keys)


def version_of(manifest: Manifest) -> int:
    """Versions of objects of one kind can be compared by order."""
    return int(manifest["metadata"]["resourceVersion"])
