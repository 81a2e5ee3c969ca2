"""Applies what was decided: the only module that changes anything in the cluster."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from lakestream_api import LakeStreamStatus
from lakestream_api.names import API_VERSION, KIND, MANAGED_BY, STREAM_LABEL
from lakestream_operator.adapters.cache import Cache, key_of
from lakestream_operator.adapters.client import Api
from lakestream_operator.errors import (
    ConflictError,
    DefinitionTooOldError,
    InvalidError,
    LeadershipLostError,
    NameTakenError,
    NotFoundError,
    OperatorError,
)
from lakestream_operator.model import Action, Apply, Create, Delete, Emit, Finalize, Kind, Manifest, Reference, Stream
from lakestream_operator.observer import FINALIZER

logger = logging.getLogger(__name__)

_MAX_EVENT = 1024
"""The API server's limit of an event's message."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Writes, and puts the answers into the cache: the next cycle sees what this one did."""

    client: Api
    cache: Cache
    identity: str
    """Of this replica, for events."""
    leads: Callable[[], bool] = lambda: True
    """Whether this replica may act."""

    async def act(self, stream: Stream, action: Action, now: datetime) -> None:
        """Take one action.

        Raises:
            OperatorError: it could not be done; the next cycle decides anew.
        """
        self._check()
        match action:
            case Apply(manifest, uid):
                await self._apply(stream, manifest, uid)
            case Create(manifest):
                await self._create(stream, manifest)
            case Delete(reference, uid):
                await self._delete(reference, uid)
            case Finalize(present):
                await self._finalize(stream, present=present)
            case Emit():
                await self._emit(stream, action, now)

    async def quotas(self, stream: Stream) -> tuple[Manifest, ...]:
        """The ResourceQuotas of its namespace; none if the operator may not see them."""
        try:
            return tuple(await self.client.list_all(Kind.ResourceQuota, stream.namespace))
        except OperatorError as error:
            logger.info("quotas of %s: %s", stream.namespace, error)
            return ()

    async def write_status(self, stream: Stream, status: LakeStreamStatus) -> None:
        """Write the LakeStream's status.

        Raises:
            OperatorError: it could not be done.
        """
        self._check()
        written = status.model_dump(mode="json", by_alias=True)
        # With the uid, so that one of the name that was created since is not told its predecessor's.
        await self._merge(stream, {"metadata": {"uid": stream.uid}, "status": written}, subresource="status")

    def _check(self) -> None:
        if not self.leads():
            raise LeadershipLostError("the Lease has run out; nothing is done any more")

    async def _apply(self, stream: Stream, manifest: Manifest, uid: str) -> None:
        """Apply to an object of ours, or to none."""
        reference = Reference.of(manifest)
        if uid:
            with suppress(ConflictError, InvalidError):
                self.cache.put(reference.kind, await self.client.apply(_with_uid(manifest, uid)))
                return
        # There was none, or it is another one by now. Watches show our own objects alone: who else may have the name
        # has to be asked. (To create by POST would tell as well, but leave fields that no later apply can remove.)
        uid = await self._uid_of_ours(stream, reference)
        self.cache.put(reference.kind, await self.client.apply(_with_uid(manifest, uid) if uid else manifest))

    async def _create(self, stream: Stream, manifest: Manifest) -> None:
        reference = Reference.of(manifest)
        try:
            created = await self.client.create(manifest)
            if lacking := _cut_off(created, manifest):
                # Without its template a driver would find neither its document nor, by its labels, us.
                await self._delete(reference, created["metadata"]["uid"])
                raise _too_old(reference, lacking)
        except ConflictError:
            # It was there although it had not been seen; nothing of it may be changed.
            created = await self.client.get(reference)
            refuse_foreign(stream, created)
            logger.info("%s exists already", reference)
        self.cache.put(reference.kind, created)

    async def _uid_of_ours(self, stream: Stream, reference: Reference) -> str:
        """The uid of an object that was not seen yet, or empty if there is none."""
        try:
            found = await self.client.get(reference)
        except NotFoundError:
            return ""
        refuse_foreign(stream, found)
        uid: str = found["metadata"]["uid"]
        return uid

    async def _delete(self, reference: Reference, uid: str) -> None:
        try:
            answer = await self.client.delete(reference, uid)
        except NotFoundError:
            self.cache.remove(reference)
            return
        except ConflictError:
            # Another object has taken the name; what it is has to be seen before anything is done to it.
            self.cache.put(reference.kind, await self.client.get(reference))
            return
        if answer.get("kind") == reference.kind.name:
            self.cache.put(reference.kind, answer)
        else:
            self.cache.remove(reference)

    async def _finalize(self, stream: Stream, *, present: bool) -> None:
        metadata = stream.manifest["metadata"]
        others = [one for one in metadata.get("finalizers", ()) if one != FINALIZER]
        # With the version, so that nothing that another one added in between is taken away.
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*others, FINALIZER] if present else others,
            }
        }
        await self._merge(stream, patch)

    async def _merge(self, stream: Stream, patch: Manifest, subresource: str = "") -> None:
        reference = Reference(Kind.LakeStream, stream.namespace, stream.name)
        try:
            self.cache.put(Kind.LakeStream, await self.client.merge(reference, patch, subresource))
        except NotFoundError:
            self.cache.remove(reference)

    async def _emit(self, stream: Stream, event: Emit, now: datetime) -> None:
        level = logging.WARNING if event.warning else logging.INFO
        logger.log(
            level, "%s", event.message, extra={"stream": f"{stream.namespace}/{stream.name}", "reason": event.reason}
        )
        try:
            await self.client.create(_event(stream, event, now, self.identity))
        except OperatorError as error:
            # What is told is not worth doing twice what was done.
            logger.warning("event %s of %s/%s: %s", event.reason, stream.namespace, stream.name, error)


def _with_uid(manifest: Manifest, uid: str) -> Manifest:
    """Another object, which has taken the name since, is refused."""
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}


def _cut_off(created: Manifest, wanted: Manifest) -> list[str]:
    """Fields of a SparkApplication that the API server has left out: its definition does not have them. What
    admission has changed, or what is in templates, is no matter of that."""
    made, spec = created.get("spec") or {}, wanted.get("spec") or {}
    parts = [("spec", made, spec)]
    parts += [(f"spec.{part}", made.get(part) or {}, spec.get(part) or {}) for part in ("driver", "executor")]
    return [f"{path}.{name}" for path, got, given in parts for name in given if given[name] and name not in got]


def _too_old(reference: Reference, lacking: list[str]) -> DefinitionTooOldError:
    return DefinitionTooOldError(
        f"{reference} cannot have {', '.join(lacking)}: the CustomResourceDefinition of SparkApplications is older"
        " than that of the Spark Operator 2.5, and the API server cuts off what it does not have. Bring the Spark"
        " Operator up to date, and apply its CustomResourceDefinitions by kubectl, as helm leaves those that are there"
    )


def refuse_foreign(stream: Stream, found: Manifest) -> None:
    """See to it that an object is one of the LakeStream's: by its labels, which nobody else gives it by accident.

    Raises:
        NameTakenError: it is not.
    """
    if key_of(found) == (stream.namespace, stream.name):
        return
    reference = Reference(Kind[found["kind"]], found["metadata"]["namespace"], found["metadata"]["name"])
    use = " To use it as it is, name it in spec.kubernetes.serviceAccount."
    raise NameTakenError(
        f"{reference} is not of this LakeStream (its labels are not: {STREAM_LABEL}={stream.name},"
        f" app.kubernetes.io/managed-by={MANAGED_BY}), and nothing of it is changed. Delete or rename it, or give the"
        f" LakeStream or its writer another name.{use if reference.kind is Kind.ServiceAccount else ''}"
    )


def _event(stream: Stream, event: Emit, now: datetime, identity: str) -> Manifest:
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = hashlib.sha256(f"{stream.uid} {event.reason} {event.message} {now.isoformat()}".encode()).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{stream.name}.{digest[:16]}", "namespace": stream.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": stream.namespace,
            "name": stream.name,
            "uid": stream.uid,
        },
        "reason": event.reason,
        "message": event.message[:_MAX_EVENT],
        "type": "Warning" if event.warning else "Normal",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": MANAGED_BY},
        "reportingComponent": MANAGED_BY,
        "reportingInstance": identity,
    }
