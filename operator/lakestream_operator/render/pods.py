"""Templates of driver and executor pods.

Templates, and not the fields of a SparkApplication that look the same: those are put into pods by the Spark Operator's
webhook, so that executors would come out wrong while that is down. Spark itself applies templates. All pods keep to
the restricted pod security standard.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from lakestream_api import EnvVar, Kubernetes, Pod
from lakestream_api.names import (
    DOCUMENT_FOLDER,
    DOCUMENT_KEY,
    LOG_FORMAT_VARIABLE,
    NAMESPACE_VARIABLE,
    POD_UID_VARIABLE,
    POD_VARIABLE,
)
from lakestream_api.templates import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from lakestream_operator.render.document import Plan
from lakestream_operator.render.merge import merged
from lakestream_operator.settings import JobSettings, PodSettings

METRICS_PORT = 9090
"""Port of the driver's Prometheus metrics."""

_UID = 185
"""The user of Spark's images. The group is root's, as is usual where users are assigned at will."""

# A driver that is moved costs a start of a minute or more; executors come and go at will, and where a node has but one
# of them left the Cluster Autoscaler would let it be, for their folders and since no controller that it knows has them.
_EVICTABLE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_LET_BE = {"karpenter.sh/do-not-disrupt": "true", _EVICTABLE: "false"}
_MOVED = {_EVICTABLE: "true"}

_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": _UID,
    "runAsGroup": 0,
    "fsGroup": _UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
_ENV = {name: {"name": name, "value": value} for name, value in (("HOME", "/tmp"), (LOG_FORMAT_VARIABLE, "json"))}
_DOWNWARD = {
    POD_VARIABLE: "metadata.name",
    POD_UID_VARIABLE: "metadata.uid",
    NAMESPACE_VARIABLE: "metadata.namespace",
}


def driver_template(plan: Plan, job: JobSettings) -> dict[str, Any]:
    """PodTemplateSpec of the driver."""
    downward = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in _DOWNWARD.items()]
    container = _container(DRIVER_CONTAINER, plan, job) | {
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        # What the driver writes down of its end is its own; its log's last lines would be noise.
        "terminationMessagePolicy": "File",
    }
    container["env"] += downward
    container["volumeMounts"].append({"name": "document", "mountPath": DOCUMENT_FOLDER, "readOnly": True})
    pod = _pod(container)
    # Only what this driver was started with: the same ConfigMap may hold an older document too.
    items = [{"key": DOCUMENT_KEY, "path": DOCUMENT_KEY}]
    pod["volumes"].append({"name": "document", "configMap": {"name": plan.names.document, "items": items}})
    pod["terminationGracePeriodSeconds"] = job.termination_grace_period_seconds
    # Said here, since an account that somebody else made may have it off.
    pod["automountServiceAccountToken"] = True
    template = {"metadata": {"labels": _labels(plan, job), "annotations": _LET_BE}, "spec": pod}
    return _changed(template, job.driver, plan.stream.spec.kubernetes, plan.stream.spec.kubernetes.driver)


def executor_template(plan: Plan, job: JobSettings) -> dict[str, Any]:
    """PodTemplateSpec of the executors."""
    # Executors never talk to the API server.
    pod = _pod(_container(EXECUTOR_CONTAINER, plan, job)) | {"automountServiceAccountToken": False}
    template = {"metadata": {"labels": _labels(plan, job), "annotations": _MOVED}, "spec": pod}
    return _changed(template, job.executor, plan.stream.spec.kubernetes, plan.stream.spec.kubernetes.executor)


def _changed(template: dict[str, Any], all_of_them: PodSettings, pods: Kubernetes, own: Pod) -> dict[str, Any]:
    """By what is for all LakeStreams, then for both kinds of pods of this one, then for this kind alone."""
    return dict(reduce(merged, (all_of_them.template, _of_both(pods), own.template or {}), template))


def _labels(plan: Plan, job: JobSettings) -> dict[str, str]:
    return {**job.labels, **plan.stream.spec.kubernetes.pod_labels, **plan.names.labels}


def _of_both(pods: Kubernetes) -> dict[str, Any]:
    """A LakeStream's fields for driver and executors, as a template."""
    spec: dict[str, Any] = {}
    if pods.node_selector:
        spec["nodeSelector"] = dict(pods.node_selector)
    if pods.tolerations:
        spec["tolerations"] = [
            one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in pods.tolerations
        ]
    if pods.priority_class_name:
        spec["priorityClassName"] = pods.priority_class_name
    return {"metadata": {"annotations": dict(pods.pod_annotations)}, "spec": spec}


def _pod(container: dict[str, Any]) -> dict[str, Any]:
    return {
        "containers": [container],
        "securityContext": _POD_SECURITY,
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _container(name: str, plan: Plan, job: JobSettings) -> dict[str, Any]:
    pods = plan.stream.spec.kubernetes
    variables = _ENV | _variables([*job.env, *pods.env])
    sources = [*job.env_from, *pods.env_from]
    return {
        "name": name,
        "env": list(variables.values()),
        "envFrom": [one.model_dump(mode="json", by_alias=True, exclude_defaults=True) for one in sources],
        "securityContext": _CONTAINER_SECURITY,
        # The root file system is read-only; Spark mounts what it spills to by itself.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _variables(given: Iterable[EnvVar]) -> dict[str, dict[str, Any]]:
    """By name; the last one of a name wins."""
    return {one.name: one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in given}
