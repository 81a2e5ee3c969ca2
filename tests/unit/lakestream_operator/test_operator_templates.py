"""Templates of pods that a LakeStream gives, merged into those that the operator makes."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_api import InvalidDocumentError
from lakestream_api.templates import DRIVER_CONTAINER
from lakestream_operator.observer import stream_of
from lakestream_operator.render import render_application, wanted_of
from lakestream_operator.render.merge import merged
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.cluster import JOB

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
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
    ],
)
def test_merging_is_kubernetes_strategic_merge(base: Any, patch: Any, expected: Any) -> None:
    assert merged(base, patch) == expected


@given(
    st.recursive(
        st.integers() | st.text(), lambda below: st.dictionaries(st.text(max_size=2), below, max_size=3), max_leaves=9
    )
)
def test_merging_nothing_or_the_same_changes_nothing(value: Any) -> None:
    base = {"a": value}
    assert merged(base, {}) == base
    assert merged(base, base) == base


def _templates(**kubernetes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1"}
    manifest["spec"]["kubernetes"] = kubernetes
    application = render_application(wanted_of(stream_of(manifest)).plans["json"], OWNER, JOB, 1)
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
    assert executor["metadata"]["annotations"] == {"example.com/a": "b"}


def test_drivers_are_let_be_and_executors_are_not() -> None:
    driver, executor = _templates()
    assert driver["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    assert executor["metadata"]["annotations"] == {}
    driver, _ = _templates(driver={"template": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "false"}}}})
    assert driver["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "false"}


def test_a_streams_spark_configuration_goes_before_the_operators() -> None:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1"}
    manifest["spec"]["kubernetes"] = {"sparkConf": {"spark.network.timeout": "300s"}}
    job = JOB.model_copy(update={"spark_conf": {"spark.network.timeout": "60s", "spark.rpc.numRetries": "9"}})
    conf = render_application(wanted_of(stream_of(manifest)).plans["json"], OWNER, job, 1)["spec"]["sparkConf"]
    assert (conf["spark.network.timeout"], conf["spark.rpc.numRetries"]) == ("300s", "9")
