"""What a driver needs around it: its document, its orders, its report, its rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakestream_api import Control, WriterNames
from lakestream_api.names import CONTROL_KEY, DOCUMENT_KEY, GROUP
from lakestream_operator.model import Kind, Manifest, Memory, Stream
from lakestream_operator.render.document import Plan

GOOD_KEY = "good.yaml"
"""Key of the document's ConfigMap: the last document whose driver committed a batch."""

MEMORY_ANNOTATION = f"{GROUP}/memory"
SCALING_ANNOTATION = f"{GROUP}/scaling-state"
SHARDS_ANNOTATION = f"{GROUP}/shards-state"
"""Of the orders: what the operator remembers of the writer, and what its autoscaler does."""


def manifest_of(
    kind: Kind, name: str, names: WriterNames, stream: Stream, *, annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The part that all objects of a writer share."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": stream.namespace,
        "labels": names.labels,
        "ownerReferences": [stream.owner_reference],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}


def labelled(manifest: Manifest, labels: Mapping[str, str]) -> Manifest:
    """An object with more labels, as policies of the cluster ask for."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**labels, **metadata["labels"]}}}


def document_manifest(plan: Plan, stream: Stream, good: str | None) -> Manifest:
    """ConfigMap of the document; `good` is the last one that got to run."""
    names = plan.names
    data = {DOCUMENT_KEY: plan.document} | ({GOOD_KEY: good} if good else {})
    return {**manifest_of(Kind.ConfigMap, names.document, names, stream), "data": data}


def control_manifest(
    names: WriterNames,
    stream: Stream,
    control: Control,
    memory: Memory,
    *,
    scaling_state: str | None = None,
    shard_state: str | None = None,
) -> Manifest:
    """ConfigMap of the orders to the driver, and of what is remembered of the writer."""
    annotations = {MEMORY_ANNOTATION: memory.model_dump_json(exclude_defaults=True)}
    if scaling_state is not None:
        annotations[SCALING_ANNOTATION] = scaling_state
    if shard_state is not None:
        annotations[SHARDS_ANNOTATION] = shard_state
    return {
        **manifest_of(Kind.ConfigMap, names.control, names, stream, annotations=annotations),
        "data": {CONTROL_KEY: control.model_dump_json(exclude_none=True)},
    }


def supports(plan: Plan, stream: Stream, cluster_role: str) -> tuple[Manifest, ...]:
    """What must be there before a driver starts, besides document and control."""
    names, pods = plan.names, plan.stream.spec.kubernetes
    account = pods.service_account or names.service_account
    binding = {
        **manifest_of(Kind.RoleBinding, names.role_binding, names, stream),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": stream.namespace}],
    }
    # Without data: its only author is the driver.
    progress = manifest_of(Kind.ConfigMap, names.progress, names, stream)
    if pods.service_account is not None:
        return (binding, progress)
    made = manifest_of(Kind.ServiceAccount, account, names, stream, annotations=pods.service_account_annotations)
    return (made, binding, progress)
