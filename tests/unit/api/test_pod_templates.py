"""What of pods and of Spark a LakeStream may set, and what it is told of the rest."""

from typing import Any

import pytest

from lakestream_api import InvalidDocumentError, load_lakestream_object

DRIVER = "spark-kubernetes-driver"


def _load(**kubernetes: Any) -> Any:
    return load_lakestream_object(
        {
            "apiVersion": "lakestream.dev/v1alpha1",
            "kind": "LakeStream",
            "metadata": {"name": "orders"},
            "spec": {
                "source": {"kinesis": {"stream": "orders", "region": "eu-west-1"}},
                "schema": "order_id string",
                "writers": [{"name": "json", "json": {"path": "s3a://lake/orders_json"}}],
                "checkpoint": "s3a://lake/_checkpoints/orders",
                "kubernetes": kubernetes,
            },
        }
    )


def _container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": DRIVER, **fields}]}}


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": {"labels": {"team": "shop"}, "annotations": {"example.com/a": "b c"}}},
        {"spec": {"affinity": {"nodeAffinity": {}}, "tolerations": [], "topologySpreadConstraints": []}},
        {"spec": {"volumes": [{"name": "scratch", "ephemeral": {}}], "terminationGracePeriodSeconds": 60}},
        _container(resources={"requests": {"ephemeral-storage": "10Gi"}}, env=[{"name": "MINE", "value": "x"}]),
        _container(env=[{"name": "MINE", "value": "x"}, {"name": "MINE", "value": "y"}]),
        _container(volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}]),
        _container(resources={"claims": [{"name": "gpu", "request": "one"}], "limits": {"example.com/gpu": 1}}),
        {"spec": {"containers": [{"name": "sidecar", "image": "proxy:1", "args": ["serve"]}]}},
    ],
    ids=str,
)
def test_a_template_may_say(template: dict[str, Any]) -> None:
    assert _load(driver={"template": template}).spec.kubernetes.driver.template == template


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"kind": "Pod"}, "kind"),
        ({"metadata": {"name": "mine"}}, "metadata.name"),
        ({"metadata": {"labels": {"lakestream.dev/stream": "other"}}}, "metadata.labels.lakestream.dev/stream"),
        ({"metadata": {"labels": None}}, "metadata.labels"),
        ({"metadata": {"labels": {"team": "the shop"}}}, "metadata.labels.team"),
        ({"metadata": {"labels": {"a team": "shop"}}}, "metadata.labels.a team"),
        ({"metadata": {"labels": {"team": "x" * 64}}}, "metadata.labels.team"),
        ({"metadata": {"annotations": {"a b": "c"}}}, "metadata.annotations.a b"),
        ({"spec": "x"}, "spec"),
        ({"spec": {"serviceAccountName": "admin"}}, "spec.serviceAccountName"),
        ({"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy"),
        ({"spec": {"volumes": [{"name": "document", "emptyDir": {}}]}}, "spec.volumes.document"),
        ({"spec": {"volumes": None}}, "spec.volumes"),
        ({"spec": {"containers": [1]}}, "spec.containers"),
        ({"spec": {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a"}]}}, "spec.volumes.a"),
        ({"spec": {"containers": [{"name": DRIVER}, {"name": DRIVER, "tty": True}]}}, f"spec.containers.{DRIVER}"),
        ({"spec": {"initContainers": [{"name": "a"}, {"name": "a"}]}}, "spec.initContainers.a"),
        (
            _container(volumeMounts=[{"mountPath": "/a"}, {"mountPath": "/a"}]),
            f"spec.containers.{DRIVER}.volumeMounts./a",
        ),
        ({"spec": {"securityContext": {"$patch": "replace"}}}, "spec.securityContext.$patch"),
        (_container(env=[{"name": "A", "$patch": "delete"}]), "spec.containers[0].env[0].$patch"),
        ({"metadata": {"annotations": {"$patch": "replace"}}}, "metadata.annotations.$patch"),
        (_container(image="mine:1"), f"spec.containers.{DRIVER}.image"),
        (_container(command=["sh"]), f"spec.containers.{DRIVER}.command"),
        (_container(env=None), f"spec.containers.{DRIVER}.env"),
        (_container(env=[{"name": "LAKESTREAM_POD", "value": "x"}]), f"spec.containers.{DRIVER}.env.LAKESTREAM_POD"),
        (_container(volumeMounts=[{"mountPath": "/tmp/"}]), f"spec.containers.{DRIVER}.volumeMounts./tmp/"),
        (_container(resources={"limits": {"memory": "1Gi"}}), f"spec.containers.{DRIVER}.resources.limits.memory"),
        (_container(resources={"limits": "x"}), f"spec.containers.{DRIVER}.resources.limits"),
    ],
    ids=str,
)
def test_a_template_may_not_say(template: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        _load(driver={"template": template})
    assert f"spec.kubernetes.driver.template.{path}: " in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "spark.network.timeout",
        "spark.hadoop.fs.gs.x",
        "spark.executor.extraJavaOptions",
        "spark.kubernetes.submission.requestTimeout",
        "spark.kubernetes.driver.service.ipFamilies",
        "spark.kubernetes.driver.service.ipFamilyPolicy",
        "spark.kubernetes.driver.service.label.team",
        "spark.kubernetes.driver.service.annotation.example.com/cost-center",
    ],
)
def test_sparks_configuration_may_have(key: str) -> None:
    assert _load(sparkConf={key: "1"}).spec.kubernetes.spark_conf == {key: "1"}


@pytest.mark.parametrize(
    "key",
    [
        "network.timeout",
        "spark.executor.memoryOverhead",
        "spark.kubernetes.driver.pod.name",
        "spark.kubernetes.driver.service.deleteOnTermination",
        "spark.dynamicAllocation.enabled",
        "spark.jars.packages",
        "spark.kubernetes.file.upload.path",
        "spark.kubernetes.submission.waitAppCompletion",
        "spark.kubernetes.kerberos.krb5.path",
        "spark.kerberos.keytab",
        "spark.yarn.keytab",
        "spark.executorEnv.PYTHONPATH",
        "spark.kubernetes.driverEnv.LAKESTREAM_NAMESPACE",
        "spark.speculation",
        "spark.serializer",
        "spark.sql.session.timeZone",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.driver.defaultJavaOptions",
        "spark.executor.defaultJavaOptions",
    ],
)
def test_sparks_configuration_may_not_have(key: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        _load(sparkConf={key: "1"})
    assert f"spec.kubernetes.sparkConf[{key}]: " in str(caught.value)


@pytest.mark.parametrize("size", ["10Gi\n", "\n10Gi", "10Gi\t", "", ".", "10 Gi"])
def test_an_amount_is_one_that_go_reads(size: str) -> None:
    volumes = [{"name": "spill", "emptyDir": {"sizeLimit": size}}]
    with pytest.raises(InvalidDocumentError, match=r"volumes\[0\]\.emptyDir\.sizeLimit.*must be an amount"):
        _load(driver={"template": {"spec": {"volumes": volumes}}})


def test_an_amount_of_many_digits_is_read_in_one_way() -> None:
    """Of ten thousand, each of which would take as long as the last: the operator answers nobody meanwhile."""
    sizes = [{"name": f"v{at}", "emptyDir": {"sizeLimit": "1" * 100_000 + "GB"}} for at in range(20)]
    with pytest.raises(InvalidDocumentError, match="must be an amount"):
        _load(driver={"template": {"spec": {"volumes": sizes}}})
