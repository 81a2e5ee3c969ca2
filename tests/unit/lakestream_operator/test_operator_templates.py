"""Templates of pods that a LakeStream gives, merged into those that the operator makes."""

import json
import re
from contextlib import suppress
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client.models import V1PodTemplateSpec
from pydantic import BaseModel

from lakestream_api import InvalidDocumentError
from lakestream_api.pod_fields import TYPES
from lakestream_api.templates import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from lakestream_operator.observer import stream_of
from lakestream_operator.render import render_application, wanted_of
from lakestream_operator.render.merge import merged
from lakestream_operator.settings import JobSettings, PodSettings
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.cluster import JOB

EVICTABLE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
OWNER = stream_of({**lakestream(), "metadata": {"name": "orders", "namespace": "lake", "uid": "uid-1"}})


@pytest.mark.parametrize(
    ("base", "patch", "expected"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        (
            {"volumes": [{"name": "tmp", "emptyDir": {}}]},
            {"volumes": [{"name": "x"}]},
            {"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "x"}]},
        ),
        (
            {"containers": [{"name": "spark", "env": [{"name": "A", "value": "1"}]}]},
            {"containers": [{"name": "spark", "env": [{"name": "B", "value": "2"}]}]},
            {"containers": [{"name": "spark", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
        ),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "A", "value": "3"}]},
            {"env": [{"name": "A", "value": "3"}]},
        ),
        (
            {"volumes": [{"name": "ca", "configMap": {"name": "ours", "optional": True}}]},
            {"volumes": [{"name": "ca", "configMap": {"name": "theirs"}}]},
            {"volumes": [{"name": "ca", "configMap": {"name": "theirs", "optional": True}}]},
        ),
        (
            {"volumes": [{"name": "ca", "configMap": {"name": "ca"}}]},
            {"volumes": [{"name": "ca", "secret": {"secretName": "ca"}}]},
            {"volumes": [{"name": "ca", "secret": {"secretName": "ca"}}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
    ],
)
def test_merging_is_kubernetes_strategic_merge(base: Any, patch: Any, expected: Any) -> None:
    assert merged(base, patch) == expected


SECRET = {"secretKeyRef": {"name": "keys", "key": "a"}}


@pytest.mark.parametrize(
    ("base", "patch", "expected"),
    [
        ({"value": "x"}, {"valueFrom": SECRET}, {"valueFrom": SECRET}),
        ({"valueFrom": SECRET}, {"value": ""}, {"value": ""}),
        ({"valueFrom": SECRET}, {"valueFrom": None, "value": "x"}, {"value": "x"}),
        ({"valueFrom": {"configMapKeyRef": {"name": "map", "key": "a"}}}, {"valueFrom": SECRET}, {"valueFrom": SECRET}),
        (
            {"valueFrom": SECRET},
            {"valueFrom": {"secretKeyRef": {"key": "b"}}},
            {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
        ),
        ({"value": "x"}, {}, {"value": "x"}),
    ],
)
def test_a_variable_has_its_value_from_one_place(base: Any, patch: Any, expected: Any) -> None:
    """The API server refuses a pod with one that has two, and of an executor's the driver's log alone would tell."""
    name = {"name": "AWS_ACCESS_KEY_ID"}
    assert merged({"env": [name | base]}, {"env": [name | patch]}) == {"env": [name | expected]}


@given(
    st.recursive(
        st.integers() | st.text(), lambda below: st.dictionaries(st.text(max_size=2), below, max_size=3), max_leaves=9
    )
)
def test_merging_nothing_or_the_same_changes_nothing(value: Any) -> None:
    base = {"a": value}
    assert merged(base, {}) == base
    assert merged(base, base) == base


def _templates(job: JobSettings = JOB, **kubernetes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1"}
    manifest["spec"]["kubernetes"] = kubernetes
    application = render_application(wanted_of(stream_of(manifest)).plans["json"], OWNER, job, 1)
    return application["spec"]["driver"]["template"], application["spec"]["executor"]["template"]


JUNK = st.recursive(
    st.none() | st.integers(0, 1) | st.sampled_from(["tmp", "A", "spark-kubernetes-driver", "limits"]),
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "mountPath", "key", "limits"]), below, max_size=2)
    ),
    max_leaves=4,
)
ENTRY = st.fixed_dictionaries({}, optional={"name": JUNK, "mountPath": JUNK, "value": JUNK})
ENTRIES = JUNK | st.lists(ENTRY, max_size=2)
CONTAINER = st.fixed_dictionaries(
    {"name": st.just("spark-kubernetes-driver") | JUNK},
    optional={
        "env": ENTRIES,
        "volumeMounts": ENTRIES,
        "volumeDevices": ENTRIES,
        "resources": JUNK,
        "securityContext": JUNK,
    },
)
TEMPLATE = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": JUNK, "annotations": JUNK}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "volumes": ENTRIES,
                "containers": JUNK | st.lists(CONTAINER, max_size=2),
                "initContainers": ENTRIES,
                "imagePullSecrets": ENTRIES,
                "securityContext": JUNK,
            },
        ),
    },
)


@given(TEMPLATE)
def test_a_template_can_be_merged_or_is_refused(template: dict[str, Any]) -> None:
    with suppress(InvalidDocumentError):
        _templates(driver={"template": template})


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"volumes": [{"name": ["a"]}]}, "spec.volumes: must be a list of mappings, each with a text as its name"),
        (
            {"containers": [{"name": DRIVER_CONTAINER, "env": [{"name": {}}]}]},
            f"spec.containers.{DRIVER_CONTAINER}.env: must be a list of mappings, each with a text as its name",
        ),
        (
            {"containers": [{"name": DRIVER_CONTAINER, "volumeMounts": [{"mountPath": 1}]}]},
            f"spec.containers.{DRIVER_CONTAINER}.volumeMounts: must be a list of mappings, each with a text as its"
            " mountPath",
        ),
    ],
)
def test_what_entries_are_told_apart_by_is_text(field: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=re.escape(problem)):
        _templates(driver={"template": {"spec": field}})


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ({"metadata": {"labels": {"team": 1}}}, "metadata.labels.team: is 1; must be a text"),
        ({"metadata": {"annotations": {"a/b": True}}}, "metadata.annotations.a/b: is true; must be a text"),
        ({"spec": {"tolerations": {"key": "spot"}}}, "spec.tolerations: is a mapping; must be a list"),
        ({"spec": {"nodeSelector": {"gpu": True}}}, "spec.nodeSelector.gpu: is true; must be a text"),
        ({"spec": {"priority": "high"}}, 'spec.priority: is "high"; must be a whole number'),
        ({"spec": {"priority": 1 << 31}}, "spec.priority: is 2147483648; must be a whole number"),
        ({"spec": {"hostNetwork": "true"}}, 'spec.hostNetwork: is "true"; must be true or false'),
        ({"spec": {"securityContext": "none"}}, 'spec.securityContext: is "none"; must be a mapping'),
        (
            {"spec": {"volumes": [{"name": "spill", "emptyDir": {"sizeLimit": "10GB"}}]}},
            'spec.volumes[0].emptyDir.sizeLimit: is "10GB"; must be an amount of Kubernetes',
        ),
        (
            {"spec": {"containers": [{"name": DRIVER_CONTAINER, "env": [{"name": "A", "value": 1}]}]}},
            "spec.containers[0].env[0].value: is 1; must be a text",
        ),
        (
            {"spec": {"initContainers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "one"}}}]}},
            'spec.initContainers[0].resources.limits.nvidia.com/gpu: is "one"; must be an amount of Kubernetes',
        ),
        (
            {"spec": {"containers": [{"name": "side", "livenessProbe": {"httpGet": {"port": True}}}]}},
            "spec.containers[0].livenessProbe.httpGet.port: is true; must be the number or the name of a port",
        ),
    ],
)
@pytest.mark.parametrize("pod", ["driver", "executor"])
def test_what_the_spark_operator_could_not_read_is_refused(pod: str, template: dict[str, Any], problem: str) -> None:
    """It reads all SparkApplications at a time, or none."""
    if pod == "executor":
        template = json.loads(json.dumps(template).replace(DRIVER_CONTAINER, EXECUTOR_CONTAINER))
    with pytest.raises(InvalidDocumentError, match=re.escape(f"spec.kubernetes.{pod}.template.{problem}")):
        _templates(**{pod: {"template": template}})


def test_what_it_can_read_is_the_api_servers_to_judge() -> None:
    spec = {
        "overhead": {"cpu": 0.5, "memory": "1e3", "a": "1.5Gi", "b": ".5", "c": "-5m", "d": "3E", "e": " 2 ", "f": 7},
        "tolerations": None,
        "priority": 1.0,
        "activeDeadlineSeconds": 1 << 40,
        "noSuchField": {"labels": [1]},
        "volumes": [{"name": "spill", "ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": None}}}}],
        "containers": [{"name": "side", "args": [None], "lifecycle": {"preStop": {"tcpSocket": {"port": "http"}}}}],
    }
    for template in _templates(driver={"template": {"spec": spec}}, executor={"template": {"spec": spec}}):
        assert template["spec"]["noSuchField"] == {"labels": [1]}


def _kind_of(annotation: Any) -> str:
    """What the package `kubernetes` says of a field, in the words of `pod_fields`."""
    origin, inner = get_origin(annotation), [one for one in get_args(annotation) if one is not NoneType]
    if origin in (Union, UnionType):
        return _kind_of(inner[0]) if len(inner) == 1 else "port"
    if origin is Annotated:
        return _kind_of(inner[0])
    if origin in (list, dict):
        return f"[{_kind_of(inner[0])}]" if origin is list else f"{{{_kind_of(inner[1])}}}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.__name__.removeprefix("Core").removeprefix("V1")
    return {str: "text", bool: "bool", int: "int", datetime: "time"}.get(annotation, "any")


def _types_below(model: type[BaseModel], found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    if (name := _kind_of(model)) not in found:
        found[name] = {str(one.serialization_alias or key): _kind_of(one.annotation) for key, one in _fields(model)}
        for _, one in _fields(model):
            for below in _models_in(one.annotation):
                _types_below(below, found)
    return found


def _fields(model: type[BaseModel]) -> list[tuple[str, Any]]:
    return list(model.model_fields.items())


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for one in get_args(annotation) for found in _models_in(one)]


def test_all_fields_of_a_pod_are_known() -> None:
    """Kubernetes's models tell neither amounts from texts nor long numbers from short ones."""
    coarse = {"quantity": "text", "long": "int"}

    def told(kind: str) -> str:
        return re.sub(r"\w+", lambda one: coarse.get(one[0], one[0]), kind)

    known = {name: {field: told(kind) for field, kind in fields.items()} for name, fields in TYPES.items()}
    assert known == _types_below(V1PodTemplateSpec, {})


def test_driver_and_executors_may_be_on_different_nodes() -> None:
    on_demand = {"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"}}
    spot = {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}, "tolerations": [{"key": "spot"}]}
    plain = _templates(nodeSelector={"kubernetes.io/arch": "arm64"})
    driver, executor = _templates(
        nodeSelector={"kubernetes.io/arch": "arm64"},
        driver={"template": {"spec": on_demand}},
        executor={"template": {"spec": spot, "metadata": {"annotations": {"example.com/a": "b"}}}},
    )
    arch = {"kubernetes.io/arch": "arm64"}
    assert driver["spec"] == plain[0]["spec"] | {"nodeSelector": arch | on_demand["nodeSelector"]}
    assert executor["spec"]["nodeSelector"] == arch | {"karpenter.sh/capacity-type": "spot"}
    assert executor["spec"]["containers"] == plain[1]["spec"]["containers"]
    assert executor["metadata"]["annotations"] == {EVICTABLE: "true", "example.com/a": "b"}


def test_drivers_are_let_be_and_executors_are_not() -> None:
    driver, executor = _templates()
    assert driver["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true", EVICTABLE: "false"}
    assert executor["metadata"]["annotations"] == {EVICTABLE: "true"}
    driver, _ = _templates(driver={"template": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "false"}}}})
    assert driver["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "false", EVICTABLE: "false"}


def test_all_pods_of_a_kind_are_as_the_chart_has_them_unless_a_stream_says_otherwise() -> None:
    template = {
        "metadata": {"annotations": {"a": "chart", "b": "chart", "c": "chart"}},
        "spec": {
            "securityContext": {"runAsUser": None},
            "nodeSelector": {"a": "chart", "b": "chart", "c": "chart"},
            "tolerations": [{"key": "lake"}],
            "priorityClassName": "chart",
            "volumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        },
    }
    job = JOB.model_copy(update={"executor": PodSettings(template=template)})
    assert _templates(job)[0] == _templates()[0]
    _, given = _templates(job)
    _, plain = _templates()
    del plain["spec"]["securityContext"]["runAsUser"]
    plain["spec"]["volumes"] += template["spec"].pop("volumes")
    del template["spec"]["securityContext"]
    plain["metadata"]["annotations"] |= template["metadata"]["annotations"]
    assert given == {"metadata": plain["metadata"], "spec": plain["spec"] | template["spec"]}
    _, own = _templates(
        job,
        podAnnotations={"b": "fields", "c": "fields"},
        nodeSelector={"b": "fields", "c": "fields"},
        tolerations=[{"key": "mine"}],
        priorityClassName="fields",
        executor={"template": {"metadata": {"annotations": {"c": "own"}}, "spec": {"nodeSelector": {"c": "own"}}}},
    )
    each = {"a": "chart", "b": "fields", "c": "own"}
    assert own["metadata"]["annotations"] == {EVICTABLE: "true"} | each
    assert own["spec"]["nodeSelector"] == each
    assert [one["key"] for one in own["spec"]["tolerations"]] == ["mine"]
    assert own["spec"]["priorityClassName"] == "fields"


def test_a_streams_spark_configuration_goes_before_the_operators() -> None:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1"}
    manifest["spec"]["kubernetes"] = {"sparkConf": {"spark.network.timeout": "300s"}}
    job = JOB.model_copy(update={"spark_conf": {"spark.network.timeout": "60s", "spark.rpc.numRetries": "9"}})
    conf = render_application(wanted_of(stream_of(manifest)).plans["json"], OWNER, job, 1)["spec"]["sparkConf"]
    assert (conf["spark.network.timeout"], conf["spark.rpc.numRetries"]) == ("300s", "9")
