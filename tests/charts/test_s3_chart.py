"""The S3 server of the chart local-aws."""

from __future__ import annotations

from typing import Any

import pytest

from rendering import Render, environment

pytestmark = pytest.mark.charts


def _pod(render: Render, **values: Any) -> dict[str, Any]:
    pod: dict[str, Any] = render("local-aws", **values).one("Deployment", "s3")["spec"]["template"]["spec"]
    return pod


def test_it_serves_a_folder_in_which_the_buckets_are(render: Render) -> None:
    pod = _pod(render, case="everything")
    (buckets,), (server,) = pod["initContainers"], pod["containers"]
    assert buckets["command"] == ["mkdir", "-p", "/data/objects", "/data/objects/lake", "/data/objects/ledger"]
    assert server["args"] == ["posix", "/data/objects"]
    assert server["volumeMounts"] == buckets["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]


def test_without_buckets_there_is_still_a_folder(render: Render) -> None:
    assert _pod(render, case="bare")["initContainers"][0]["command"] == ["mkdir", "-p", "/data/objects"]


def test_it_takes_the_key_that_pods_are_given(render: Render) -> None:
    variables = environment(_pod(render)["containers"][0])
    secret = {name: value["secretKeyRef"] for name, value in variables.items() if isinstance(value, dict)}
    assert secret == {
        "ROOT_ACCESS_KEY_ID": {"name": "local-aws", "key": "AWS_ACCESS_KEY_ID"},
        "ROOT_SECRET_ACCESS_KEY": {"name": "local-aws", "key": "AWS_SECRET_ACCESS_KEY"},
    }
    assert variables["VGW_PORT"] == ":7070"
    assert variables["VGW_REGION"] == "us-east-1"


def test_another_key_starts_it_anew(render: Render) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = render("local-aws", values).one("Deployment", "s3")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/credentials"])

    assert checksum({}) == checksum({"region": "eu-west-1"})
    assert checksum({}) != checksum({"credentials": {"secretAccessKey": "another"}})


def test_it_is_probed_where_it_answers(render: Render) -> None:
    (server,) = _pod(render)["containers"]
    assert environment(server)["VGW_HEALTH"] == "/_/health"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"] == {"path": "/_/health", "port": "http"}


def test_objects_are_with_the_pod_or_in_a_claim(render: Render) -> None:
    assert _pod(render)["volumes"] == [{"name": "data", "emptyDir": {"sizeLimit": "20Gi"}}]
    assert render("local-aws").of("PersistentVolumeClaim") == []
    assert _pod(render, case="everything")["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "s3"}}
    ]
    claim = render("local-aws", case="everything").one("PersistentVolumeClaim", "s3")["spec"]
    assert claim["storageClassName"] == "gp3"
    assert claim["resources"]["requests"]["storage"] == "50Gi"
    assert _pod(render, case="claim")["volumes"][0]["persistentVolumeClaim"]["claimName"] == "objects"
    assert render("local-aws", case="claim").of("PersistentVolumeClaim") == []


def test_nothing_but_calls_comes_in(render: Render) -> None:
    (rule,) = render("local-aws").one("NetworkPolicy", "local-aws-s3")["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 7070}]


def test_budgets_are_off_unless_asked_for(render: Render) -> None:
    assert render("local-aws").of("PodDisruptionBudget") == []
    budgets = render("local-aws", case="everything").of("PodDisruptionBudget")
    assert [budget["spec"]["maxUnavailable"] for budget in budgets] == [0, 0]


@pytest.mark.parametrize("bucket", ["Lake", "a", "lake/orders"])
def test_names_that_no_bucket_can_have_are_refused(bucket: str, render: Render) -> None:
    with pytest.raises(ValueError, match="/s3/buckets/0"):
        render("local-aws", {"s3": {"buckets": [bucket]}})
