"""What is known of the cluster: all objects of LakeStreams, kept up to date by watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lakestream_api import WriterNames
from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.model import Kind, Manifest, Reference, WriterSeen
from lakestream_operator.observer import trim, writer_of

StreamKey = tuple[str, str]
"""Namespace and name of a LakeStream."""


def key_of(manifest: Manifest) -> StreamKey | None:
    """The LakeStream that an object belongs to, by its labels; none: it is not ours."""
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    ours = labels.get(STREAM_LABEL) and labels.get("app.kubernetes.io/managed-by") == MANAGED_BY
    return (metadata["namespace"], labels[STREAM_LABEL]) if ours else None


@dataclass(slots=True)
class Cache:
    """The objects of all writers, by LakeStream. Wakes whoever looks after a LakeStream when one changes."""

    wake: Callable[[StreamKey], None] = lambda _: None
    _objects: dict[StreamKey, dict[Reference, Manifest]] = field(default_factory=lambda: defaultdict(dict))
    _keys: dict[Reference, StreamKey] = field(default_factory=dict)

    def put(self, kind: Kind, manifest: Manifest) -> None:
        """Take in an object, unless that version of it or a newer one is known: answers to writes and watches race,
        and a write that changed nothing is no news."""
        trimmed = trim(kind, manifest)
        reference = Reference.of(trimmed)
        key = key_of(trimmed)
        if key is None:
            self.remove(reference)
            return
        known = self._objects[key].get(reference)
        if known is not None and not _is_newer(trimmed, known):
            return
        self._objects[key][reference] = trimmed
        self._keys[reference] = key
        self.wake(key)

    def remove(self, reference: Reference) -> None:
        """Forget an object that is gone."""
        key = self._keys.pop(reference, None)
        if key is None:
            return
        objects = self._objects[key]
        objects.pop(reference, None)
        if not objects:
            del self._objects[key]
        self.wake(key)

    def replace(self, kind: Kind, namespace: str | None, manifests: Iterable[Manifest]) -> None:
        """Take in all objects of a kind in a namespace (None: in all): what is not among them is gone."""
        listed = set()
        for manifest in manifests:
            self.put(kind, manifest)
            listed.add(Reference(kind, manifest["metadata"]["namespace"], manifest["metadata"]["name"]))
        for reference in list(self._keys):
            if reference.kind is kind and namespace in (None, reference.namespace) and reference not in listed:
                self.remove(reference)

    def writers(self, key: StreamKey) -> dict[str, WriterSeen]:
        """All writers of a LakeStream that there are objects of."""
        by_writer: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in self._objects.get(key, {}).values():
            writer = manifest["metadata"]["labels"].get(WRITER_LABEL)
            if writer:
                by_writer[writer].append(manifest)
        return {writer: writer_of(WriterNames(key[1], writer), found) for writer, found in by_writer.items()}

    def __len__(self) -> int:
        return len(self._keys)


def _is_newer(manifest: Manifest, known: Manifest) -> bool:
    """Versions of one object can be compared by order; an API server for which that is not so sends no numbers."""
    new, old = (one["metadata"].get("resourceVersion", "") for one in (manifest, known))
    return int(new) > int(old) if new.isdecimal() and old.isdecimal() else new != old or not new
