"""From manifests, as the API server gives them, to what decisions are made from. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from lakestream_api import Control, DriverReport, LakeStreamStatus, WriterNames
from lakestream_api.names import (
    CONTROL_KEY,
    DOCUMENT_KEY,
    FINGERPRINT_ANNOTATION,
    GROUP,
    MANAGED_BY,
    REPORT_KEY,
    SETTINGS_HASH_ANNOTATION,
)
from lakestream_operator.model import (
    Application,
    DriverPod,
    Heard,
    Kind,
    Manifest,
    Memory,
    PodPhase,
    Stream,
    WriterSeen,
)
from lakestream_operator.render.document import RESTART_ANNOTATION
from lakestream_operator.render.objects import GOOD_KEY, MEMORY_ANNOTATION, SCALING_ANNOTATION, SHARDS_ANNOTATION
from lakestream_operator.skew import by_the_servers

logger = logging.getLogger(__name__)

FINALIZER = f"{GROUP}/drain"
"""Keeps a LakeStream until its drivers have ended their batches."""

M = TypeVar("M", Control, DriverReport, Memory)

_WRITTEN_AT = "writtenAt"
"""Of the metadata of ConfigMaps as they are kept: when somebody else than the operator wrote to their data."""

_OUT_OF_MEMORY = "OOMKilled"

_MAX_MESSAGE = 2048
"""Of what the Spark Operator says of a failure: it is all that a submission printed, and goes into an annotation. Of
these Kubernetes lets an object have 256 KiB."""

_KEPT_METADATA = {
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
}
_KEPT: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    Kind.SparkApplication: {"spec": ("image",), "status": ("applicationState", "executionAttempts")},
    Kind.Pod: {"status": ("conditions", "containerStatuses", "initContainerStatuses", "message", "phase", "reason")},
    Kind.ConfigMap: {"data": ()},
    Kind.RoleBinding: {"roleRef": (), "subjects": ()},
    Kind.ServiceAccount: {},
    Kind.LakeStream: {"spec": (), "status": ()},
}
"""What is kept beside the metadata, and of that; all of it where nothing is named."""


def trim(kind: Kind, manifest: Manifest) -> dict[str, Any]:
    """The part of an object that decisions look at: thousands of them are kept."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name in _KEPT_METADATA}
    if kind is Kind.ConfigMap and (written := _written_at(manifest)):
        metadata[_WRITTEN_AT] = written
    kept = {
        part: {name: value for name, value in manifest[part].items() if name in names} if names else manifest[part]
        for part, names in _KEPT[kind].items()
        if manifest.get(part) is not None
    }
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **kept}


def _written_at(manifest: Manifest) -> str:
    """When somebody else than the operator last wrote to an object's data; empty: nobody has, or it does not say."""
    fields = manifest["metadata"].get("managedFields") or ()
    others = (one for one in fields if one.get("manager") != MANAGED_BY)
    # Who puts a label on it says nothing of a driver.
    return max((one.get("time", "") for one in others if "f:data" in one.get("fieldsV1", {"f:data": {}})), default="")


def stream_of(manifest: Manifest) -> Stream:
    """A LakeStream object. Its spec is looked at later: it may be invalid."""
    metadata = manifest["metadata"]
    try:
        status = LakeStreamStatus.model_validate(manifest["status"]) if manifest.get("status") else None
    except ValidationError:
        logger.warning("the status of %s/%s is not ours; it is written anew", metadata["namespace"], metadata["name"])
        status = None
    return Stream(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        deleting="deletionTimestamp" in metadata,
        finalizing=FINALIZER in metadata.get("finalizers", ()),
        manifest=manifest,
        status=status,
        restart=metadata.get("annotations", {}).get(RESTART_ANNOTATION, ""),
    )


def writer_of(names: WriterNames, objects: Iterable[Manifest]) -> WriterSeen:
    """One writer, from all the objects that bear its labels."""
    found = {(Kind[one["kind"]], one["metadata"]["name"]): one for one in objects}
    application = found.pop((Kind.SparkApplication, names.application), None)
    driver_pod = found.pop((Kind.Pod, names.driver_pod), None)
    executors = [one for (kind, _), one in found.items() if kind is Kind.Pod]
    waiting = min(filter(_waits, executors), key=lambda pod: _time(pod["metadata"]["creationTimestamp"]), default=None)
    rest = {key: one for key, one in found.items() if key[0] is not Kind.Pod}
    control = rest.get((Kind.ConfigMap, names.control), {})
    annotations = control.get("metadata", {}).get("annotations", {})
    document = _data(rest.get((Kind.ConfigMap, names.document)))
    progress = rest.get((Kind.ConfigMap, names.progress))
    written = progress["metadata"].get(_WRITTEN_AT) if progress else None
    reported_at = _time(written) if written else None
    said = _data(progress).get(REPORT_KEY, "")
    report, unreadable = _read(DriverReport, said)
    return WriterSeen(
        application=_application(application) if application else None,
        driver_pod=_driver_pod(driver_pod) if driver_pod else None,
        report=by_the_servers(report, reported_at) if report and reported_at else report,
        reported_at=reported_at,
        said=said,
        unreadable=unreadable,
        control=_parsed(Control, _data(control).get(CONTROL_KEY)),
        memory=_parsed(Memory, annotations.get(MEMORY_ANNOTATION)) or Memory(),
        scaling_state=annotations.get(SCALING_ANNOTATION),
        shard_state=annotations.get(SHARDS_ANNOTATION),
        document=document.get(DOCUMENT_KEY),
        good=document.get(GOOD_KEY),
        objects=rest,
        pending_since=_time(waiting["metadata"]["creationTimestamp"]) if waiting else None,
        pending_for=_waiting_for(waiting) if waiting else "",
        executor_pods=sum(map(_is_there, executors)),
    )


def kept_since(seen: WriterSeen, before: datetime) -> str:
    """Objects of a writer that were deleted before a time and are still there, with what keeps them; or empty."""
    told = [
        f"{kind.name} {name} was deleted at {deleted:%F %T} UTC, and is kept by its finalizers:"
        f" {', '.join(one['metadata'].get('finalizers', ())) or 'none'}."
        for (kind, name), one in seen.objects.items()
        if (deleted := _deleted(one["metadata"])) and deleted < before
    ]
    return " ".join([*sorted(told), "See whether who put them there runs."] if told else ())


def listen(
    writers: Mapping[str, WriterSeen], before: Mapping[str, Heard | None], now: datetime
) -> dict[str, WriterSeen]:
    """Writers, with when anything of their drivers was new.

    Args:
        writers: as they are seen now.
        before: what was heard of them at the last look of this process.
        now: the time.
    """
    return {name: replace(seen, heard=_heard(seen, before.get(name), now)) for name, seen in writers.items()}


def _heard(seen: WriterSeen, before: Heard | None, now: datetime) -> Heard:
    pod = seen.driver_pod
    sign = (pod.uid if pod else "", pod.phase if pod else "", seen.said)
    return before.then(sign, now) if before else Heard(sign, now)


def _data(config_map: Manifest | None) -> Mapping[str, str]:
    return (config_map or {}).get("data") or {}


def _parsed(model: type[M], text: str | None) -> M | None:
    """What a ConfigMap has; what is missing, or was spoilt by hand, says nothing."""
    return _read(model, text)[0]


def _read(model: type[M], text: str | None) -> tuple[M | None, str]:
    """What a ConfigMap has, or the first thing that is wrong with it; neither, if it has nothing."""
    if not text:
        return None, ""
    try:
        return model.model_validate_json(text), ""
    except ValidationError as error:
        logger.debug("not a %s: %s", model.__name__, error)
        first = error.errors(include_url=False, include_input=False)[0]
        return None, f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _deleted(metadata: Mapping[str, Any]) -> datetime | None:
    return _time(metadata["deletionTimestamp"]) if "deletionTimestamp" in metadata else None


def _application(manifest: Manifest) -> Application:
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    state = status.get("applicationState") or {}
    return Application(
        uid=metadata["uid"],
        created_at=_time(metadata["creationTimestamp"]),
        deleting_since=_deleted(metadata),
        generation=metadata.get("generation", 1),
        fingerprint=metadata.get("annotations", {}).get(FINGERPRINT_ANNOTATION, ""),
        state=state.get("state", ""),
        message=" ".join(state.get("errorMessage", "").split())[:_MAX_MESSAGE],
        submitted=status.get("executionAttempts", 0) > 0,
        image=(manifest.get("spec") or {}).get("image", ""),
        settings_hash=metadata.get("annotations", {}).get(SETTINGS_HASH_ANNOTATION, ""),
        finalizers=tuple(metadata.get("finalizers", ())),
    )


def _driver_pod(manifest: Manifest) -> DriverPod:
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    container = _container_state(status)
    ended, running = container.get("terminated"), container.get("running")
    owners = [one["uid"] for one in metadata.get("ownerReferences", ()) if one["kind"] == Kind.SparkApplication.name]
    started = (ended or running or {}).get("startedAt")
    return DriverPod(
        name=metadata["name"],
        uid=metadata["uid"],
        created_at=_time(metadata["creationTimestamp"]),
        deleting_since=_deleted(metadata),
        phase=PodPhase(status.get("phase", PodPhase.PENDING)),
        started_at=_time(started) if started else None,
        exit=ended["exitCode"] if ended else None,
        message=_pod_message(status, container),
        finalizers=tuple(metadata.get("finalizers", ())),
        ended_for=status.get("reason", ""),
        application_uid=next(iter(owners), ""),
    )


def _container_state(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """State of the first container: Spark's own; any other one was put in by someone else."""
    statuses = status.get("containerStatuses") or []
    named = [one for one in statuses if one["name"].startswith("spark-kubernetes-")] or statuses
    return named[0].get("state") or {} if named else {}


def _pod_message(status: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    """The most telling of the texts that there are about a pod."""
    ended, waiting = container.get("terminated") or {}, container.get("waiting") or {}
    # The kubelet's words for a pod that it has ended come before the driver's: that one only knows of a signal.
    said = " ".join(f"{status.get('message', '')} {ended.get('message', '')}".split())
    reason: str = ended.get("reason", "")
    if said:
        # Of being killed for its memory, the container itself knows nothing.
        return f"{reason}: {said}" if reason == _OUT_OF_MEMORY else said
    if ended:
        return reason if reason not in ("Error", "Completed") else ""
    unschedulable = [
        one.get("message", "")
        for one in status.get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    if unschedulable:
        return f"no node takes it: {unschedulable[0]}"
    if waiting.get("reason") in (None, "ContainerCreating", "PodInitializing"):
        return next(filter(None, map(_init_message, status.get("initContainerStatuses") or ())), "")
    return _reason_of(waiting)


def _init_message(container: Mapping[str, Any]) -> str:
    """What is wrong with a container that has to run before the driver's; empty: nothing is."""
    state = container.get("state") or {}
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return f"init container {container['name']}: {_reason_of(waiting)}"
    if ended.get("exitCode"):
        return f"init container {container['name']} ended with status {ended['exitCode']}: {_reason_of(ended)}"
    return ""


def _reason_of(state: Mapping[str, Any]) -> str:
    return f"{state.get('reason', '')}: {' '.join(state.get('message', '').split())}".strip(": ")


def _is_there(pod: Manifest) -> bool:
    """Whether an executor's pod has neither ended nor is to end."""
    ended = (pod.get("status") or {}).get("phase") in (PodPhase.SUCCEEDED, PodPhase.FAILED)
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _waiting_for(pod: Manifest) -> str:
    """What an executor's pod says of why it does not start, without the stop at its end: more is said behind it."""
    status = pod.get("status") or {}
    return _pod_message(status, _container_state(status)).rstrip(".")


def _waits(pod: Manifest) -> bool:
    """Whether an executor's pod waits for a node, or for its image."""
    return (pod.get("status") or {}).get("phase") == PodPhase.PENDING and "deletionTimestamp" not in pod["metadata"]
