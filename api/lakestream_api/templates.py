"""What of pods and of Spark is a person's to set, and what is LakeStream's own: refused by name, not ignored."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakestream_api.fields import valid_annotations, valid_labels
from lakestream_api.names import OWN_VARIABLES
from lakestream_api.pod_fields import misfits

DRIVER_CONTAINER = "spark-kubernetes-driver"
"""Spark finds the container that it is to fill in by this name; a template's entries for it are merged into it."""
EXECUTOR_CONTAINER = "spark-kubernetes-executor"

_BY_FIELDS = {
    "image": "use spec.kubernetes.image",
    "imagePullPolicy": "use spec.kubernetes.imagePullPolicy",
    "command": "Spark sets it",
    "args": "Spark sets it",
    "ports": "Spark and LakeStream set them",
    "terminationMessagePath": "the operator reads what the driver leaves there",
    "terminationMessagePolicy": "the operator reads what the driver leaves there",
}
_POD_FIELDS = {
    "serviceAccountName": "use spec.kubernetes.serviceAccount",
    "serviceAccount": "use spec.kubernetes.serviceAccount",
    "automountServiceAccountToken": "drivers need their token, and executors none",
    "restartPolicy": "the operator alone starts drivers, and drivers their executors",
    "nodeName": "use nodeSelector or affinity",
}
_AMOUNTS = ("requests", "limits")
"""Of a container's resources; `claims` beside them is a list."""
_OUR_LABELS = ("lakestream.dev/", "app.kubernetes.io/", "spark-")
_OUR_VOLUMES = ("tmp", "document")
_OUR_MOUNTS = ("/tmp", "/etc/lakestream/document")

_OWN_CONF = {
    **dict.fromkeys(
        (
            "spark.app.",
            "spark.master",
            "spark.submit.",
            "spark.kubernetes.authenticate",
            "spark.kubernetes.container.image",
            "spark.kubernetes.driver.",
            "spark.kubernetes.executor.",
            "spark.kubernetes.namespace",
        ),
        "the operator sets it; pods are formed by spec.kubernetes",
    ),
    # A submission would load other code there, send away files of that pod (as those of Kerberos, be they none of its:
    # a ConfigMap or Secret of the user's namespace gets what they hold), or take up one of four workers for as long as
    # the driver runs. `spark.yarn.keytab` is an older name of `spark.kerberos.keytab`.
    **dict.fromkeys(
        (
            "spark.jars.",
            "spark.kerberos.",
            "spark.kubernetes.file.upload.path",
            "spark.kubernetes.kerberos.",
            "spark.kubernetes.submission.waitAppCompletion",
            "spark.yarn.",
        ),
        "it would act on the pod of the Spark Operator, which submits all; what drivers need goes into their image",
    ),
    # It would go round what is refused there: PYTHONPATH, and what tells a driver who it is.
    **dict.fromkeys(("spark.executorEnv.", "spark.kubernetes.driverEnv."), "use spec.kubernetes.env"),
    **dict.fromkeys(
        ("spark.driver.cores", "spark.driver.memory", "spark.executor.cores", "spark.executor.memory"),
        "use spec.resources and spec.kubernetes",
    ),
    # A driver would pass over it, and executors would lack ours.
    **dict.fromkeys(
        ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"),
        "use spark.driver.extraJavaOptions and spark.executor.extraJavaOptions, which are added to it",
    ),
    **dict.fromkeys(
        ("spark.executor.instances", "spark.dynamicAllocation.", "spark.task.cpus"), "executors follow spec.scaling"
    ),
    **dict.fromkeys(
        ("spark.speculation", "spark.sql.sources.", "spark.hadoop.mapreduce."),
        "two attempts at a task must not write at a time",
    ),
    **dict.fromkeys(
        (
            "spark.broadcast.UDFCompressionThreshold",
            "spark.eventLog.enabled",
            "spark.jars",
            "spark.kryo.",
            "spark.python.",
            "spark.pyspark.",
            "spark.scheduler.allocation.file",
            "spark.scheduler.mode",
            "spark.serializer",
            "spark.cleaner.periodicGC.interval",
            "spark.hadoop.fs.s3",
            "spark.hadoop.parquet.",
            "spark.sql.adaptive.enabled",
            "spark.sql.ansi.",
            "spark.sql.caseSensitive",
            "spark.sql.catalog.",
            "spark.sql.execution.arrow.",
            "spark.sql.extensions",
            "spark.sql.inMemoryColumnarStorage.",
            "spark.sql.legacy.",
            "spark.sql.parquet.",
            "spark.sql.session.",
            "spark.sql.ui.",
            "spark.sql.variable.substitute",
            "spark.ui.",
            "fs.",
        ),
        "LakeStream sets it, and what records become rests on it",
    ),
}


_OF_THE_SERVICE = tuple(
    f"spark.kubernetes.driver.service.{one}" for one in ("annotation.", "ipFamilies", "ipFamilyPolicy", "label.")
)
"""A person's, though what else begins like them is not: nothing else forms the Service by which executors find their
driver, and Spark makes it for IPv4, which a cluster may not have."""


def conf_problems(conf: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys of a Spark configuration that are not a person's, each with what to do instead."""
    for key in conf:
        if not key.startswith("spark."):
            yield key, "is no setting of Spark; those of Hadoop begin with 'spark.hadoop.'"
        if key.startswith(_OF_THE_SERVICE):
            continue
        for own, why in _OWN_CONF.items():
            if key == own or ((own.endswith(".") or own in _PREFIXES) and key.startswith(own)):
                yield key, f"is LakeStream's own: {why}"


_PREFIXES = {"spark.hadoop.fs.s3", "spark.driver.memory", "spark.executor.memory", "spark.kubernetes.authenticate"}
"""Of settings that go on without a dot, as in `spark.executor.memoryOverhead`."""


def template_problems(template: Mapping[str, Any], container: str) -> Iterator[tuple[str, str]]:
    """Paths in a pod's template that are not a person's, each with what to do instead.

    Args:
        template: a PodTemplateSpec, or as much of one as is to be added.
        container: name of the container that Spark runs in.
    """
    for name in template.keys() - {"metadata", "spec"}:
        yield name, "is no field of a pod's template; use metadata and spec"
    if misshapen := list(_misshapen(template, container)):
        yield from misshapen
        return
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    for name in metadata.keys() - {"labels", "annotations"}:
        yield f"metadata.{name}", "names and owners are the operator's; use labels and annotations"
    for key in metadata.get("labels") or {}:
        if key.startswith(_OUR_LABELS):
            yield f"metadata.labels.{key}", "is set by LakeStream or Spark; choose another key"
    yield from _unfit("metadata.labels", metadata.get("labels"), valid_labels)
    yield from _unfit("metadata.annotations", metadata.get("annotations"), valid_annotations)
    yield from ((f"spec.{name}", why) for name, why in _POD_FIELDS.items() if name in spec)
    for volume in spec.get("volumes") or ():
        if volume.get("name") in _OUR_VOLUMES:
            yield f"spec.volumes.{volume['name']}", "is LakeStream's own; choose another name"
    for one in spec.get("containers") or ():
        if one.get("name") == container:
            yield from ((f"spec.containers.{container}.{what}", why) for what, why in _container_problems(one))
    yield from misfits(template)


def _unfit(
    path: str, given: Mapping[str, Any] | None, checked: Callable[[dict[str, str]], object]
) -> Iterator[tuple[str, str]]:
    """What no pod can have, though an API server takes it within a SparkApplication. Other types are `misfits`."""
    for key, value in (given or {}).items():
        try:
            checked({key: value if isinstance(value, str) else ""})
        except ValueError as error:
            yield f"{path}.{key}", str(error)


def _misshapen(template: Mapping[str, Any], container: str) -> Iterator[tuple[str, str]]:
    """What cannot be looked into. Null takes a field away, which of these would take ours along."""
    for name, below in (("metadata", ("labels", "annotations")), ("spec", ())):
        if name in template and not isinstance(template[name], Mapping):
            yield name, "must be a mapping"
        for field in below:
            if field in (part := _mapping(template.get(name))) and not isinstance(part[field], Mapping):
                yield f"{name}.{field}", "must be a mapping"
    spec = _mapping(template.get("spec"))
    yield from _lists(spec, "spec", dict.fromkeys(("containers", "initContainers", "volumes"), "name"))
    containers = spec.get("containers")
    for one in containers if isinstance(containers, list) else ():
        if isinstance(one, Mapping) and one.get("name") == container:
            yield from _lists(one, f"spec.containers.{container}", {"env": "name", "volumeMounts": "mountPath"})
            resources = _mapping(one.get("resources"))
            for kind in _AMOUNTS:
                if not isinstance(resources.get(kind, {}), Mapping):
                    yield f"spec.containers.{container}.resources.{kind}", "must be a mapping"


def _lists(part: Mapping[str, Any], path: str, fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Fields that are no lists, by what their entries are told apart by, and entries that are not."""
    for field, key in fields.items():
        given = part.get(field, [])
        if not isinstance(given, list) or not all(
            isinstance(one, Mapping) and isinstance(one.get(key, ""), str) for one in given
        ):
            yield f"{path}.{field}", f"must be a list of mappings, each with a text as its {key}"
            continue
        # Of variables the last one of a name wins, merged or not: so it is in Kubernetes.
        times = Counter(one[key] for one in given if key in one and field != "env")
        yield from ((f"{path}.{field}.{name}", "is given twice; give it once") for name in times if times[name] > 1)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _container_problems(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, why) for name, why in _BY_FIELDS.items() if name in one)
    for variable in one.get("env") or ():
        if re.fullmatch(OWN_VARIABLES, str(variable.get("name", ""))):
            yield f"env.{variable['name']}", "is LakeStream's or Spark's own"
    for mount in one.get("volumeMounts") or ():
        if str(mount.get("mountPath", "")).rstrip("/") in _OUR_MOUNTS:
            yield f"volumeMounts.{mount['mountPath']}", "is LakeStream's own; choose another path"
    resources = _mapping(one.get("resources"))
    for kind in _AMOUNTS:
        for name in {"cpu", "memory"} & resources.get(kind, {}).keys():
            yield f"resources.{kind}.{name}", "use spec.resources and spec.kubernetes"
