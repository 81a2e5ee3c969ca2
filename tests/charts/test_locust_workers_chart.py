"""Locust's workers in the chart loadgen: rights, ledger, scaling."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rendering import CHARTS, Render, containers, environment, notes, pods

pytestmark = pytest.mark.charts


def _pod(render: Render, name: str = "test-loadgen-worker", **values: Any) -> dict[str, Any]:
    pod: dict[str, Any] = render("loadgen", **values).one("Deployment", name)["spec"]["template"]["spec"]
    return pod


def test_a_shipped_ledger_has_a_sidecar_that_outlives_its_worker(render: Render) -> None:
    pod = _pod(render, case="local-aws")
    (sidecar,), (worker,) = pod["initContainers"], pod["containers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["args"] == ["ledger", "ship", "/ledger", "s3://lake/_ledger"]
    mount = {"name": "ledger", "mountPath": "/ledger"}
    assert mount in sidecar["volumeMounts"]
    assert mount in worker["volumeMounts"]
    assert {"name": "ledger", "emptyDir": {"sizeLimit": "10Gi"}} in pod["volumes"]
    assert sidecar["envFrom"] == worker["envFrom"]


def test_a_ca_of_ones_own_is_trusted_by_all_that_call_aws(render: Render) -> None:
    values = {
        "caBundle": {"configMap": "ca"},
        "ledger": {"s3": "s3://lake/_ledger"},
        "env": [{"name": "A", "value": "b"}],
    }
    found = [
        (pod, each)
        for name, pod in pods(render("loadgen", values))
        if name != "test-loadgen-test"
        for each in containers(pod)
    ]
    assert [each["name"] for _, each in found] == ["locust", "ledger", "locust"]
    for pod, container in found:
        assert {"name": "ca", "configMap": {"name": "ca"}} in pod["volumes"]
        assert {"name": "ca", "mountPath": "/etc/lakestream/ca", "readOnly": True} in container["volumeMounts"]
        path = "/etc/lakestream/ca/ca.crt"
        assert environment(container) == {"AWS_CA_BUNDLE": path, "SSL_CERT_FILE": path, "A": "b"}
    assert "AWS_CA_BUNDLE" not in str(render("loadgen").objects)


def test_a_ledger_on_a_volume_needs_no_sidecar(render: Render) -> None:
    pod = _pod(render, "bare-worker", case="bare")
    assert "initContainers" not in pod
    assert {"name": "ledger", "persistentVolumeClaim": {"claimName": "ledger"}} in pod["volumes"]
    assert render("loadgen", case="bare").one("ConfigMap", "bare")["data"]["LAKESTREAM_LEDGER"] == "/ledger"


def test_without_a_place_there_is_no_ledger(render: Render) -> None:
    pod = _pod(render)
    assert "initContainers" not in pod
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp"]
    assert render("loadgen").one("ConfigMap", "test-loadgen")["data"]["LAKESTREAM_LEDGER"] == ""


def test_two_places_for_the_ledger_are_refused(render: Render) -> None:
    with pytest.raises(ValueError, match="give s3 or existingClaim, not both"):
        render("loadgen", {"ledger": {"s3": "s3://lake/_ledger", "existingClaim": "ledger"}})


def test_workers_have_time_to_settle_what_they_sent(render: Render) -> None:
    # Not imported: Locust patches the process that imports it.
    source = (CHARTS.parent / "loadgen" / "lakestream_loadgen" / "run.py").read_text("utf-8")
    (drain,) = re.findall(r"^DRAIN_SECONDS = ([\d.]+)$", source, re.MULTILINE)
    assert _pod(render)["terminationGracePeriodSeconds"] > float(drain) + 30


def test_new_workers_come_before_old_ones_leave(render: Render) -> None:
    spec = render("loadgen").one("Deployment", "test-loadgen-worker")["spec"]
    assert spec["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert spec["minReadySeconds"] == 10
    assert spec["replicas"] == 2


def test_autoscaling_takes_over_the_number_of_workers(render: Render) -> None:
    rendered = render("loadgen", case="everything")
    assert "replicas" not in rendered.one("Deployment", "test-load-worker")["spec"]
    scaler = rendered.one("HorizontalPodAutoscaler", "test-load-worker")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "test-load-worker"
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 20)
    (metric,) = scaler["metrics"]
    (worker,) = _pod(render, "test-load-worker", case="everything")["containers"]
    assert metric["containerResource"]["container"] == worker["name"]
    assert "cpu" in worker["resources"]["requests"]
    assert render("loadgen").of("HorizontalPodAutoscaler") == []


def test_a_range_of_workers_that_has_none_is_refused(render: Render) -> None:
    assert render("loadgen", {"workers": {"autoscaling": {"minReplicas": 11}}}).objects
    with pytest.raises(ValueError, match="minReplicas, 11, is more than maxReplicas, 10"):
        render("loadgen", {"workers": {"autoscaling": {"enabled": True, "minReplicas": 11}}})


def test_autoscaling_needs_a_request_of_cpu_to_go_by(render: Render) -> None:
    workers: dict[str, Any] = {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}
    with pytest.raises(ValueError, match=r"goes by the CPU .* set workers\.resources\.requests\.cpu"):
        render("loadgen", {"workers": workers})
    with pytest.raises(ValueError, match=r"set workers\.resources\.requests\.cpu"):
        render("loadgen", {"workers": {**workers, "resources": {"requests": None}}})
    # Kubernetes takes a limit for a request where there is none.
    workers["resources"]["limits"] = {"cpu": 1}
    assert render("loadgen", {"workers": workers}).of("HorizontalPodAutoscaler")


def test_one_worker_is_evicted_at_a_time(render: Render) -> None:
    (budget,) = render("loadgen").of("PodDisruptionBudget")
    assert budget["metadata"]["name"] == "test-loadgen-worker"
    assert budget["spec"]["maxUnavailable"] == 1


def test_workers_reach_what_they_call_and_hear_nobody(render: Render) -> None:
    policy = render("loadgen", case="local-aws").one("NetworkPolicy", "test-loadgen-worker")["spec"]
    assert policy["ingress"] == []
    ports = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert ports == {53, 5353, "workers", 443, 80, 4567, 7070}
    (agent,) = [rule for rule in policy["egress"] if rule["ports"][0]["port"] == 80]
    # Over IPv4, and over IPv6 in a cluster that has no other.
    assert agent["to"] == [{"ipBlock": {"cidr": cidr}} for cidr in ("169.254.170.23/32", "fd00:ec2::23/128")]


def test_the_role_of_the_node_can_be_let_in_as_the_readme_says(render: Render) -> None:
    text = (CHARTS / "loadgen/README.md").read_text("utf-8")
    found = re.search(r"--set-json 'networkPolicy\.egress=(.*)'", text)
    assert found is not None
    rules = json.loads(found[1])
    policy = render("loadgen", {"networkPolicy": {"egress": rules}}).one("NetworkPolicy", "test-loadgen-worker")["spec"]
    assert policy["egress"][-1:] == rules
    assert "169.254.169.254" not in str(render("loadgen").objects)


def test_rights_come_by_the_account(render: Render) -> None:
    rendered = render("loadgen", case="everything")
    account = rendered.one("ServiceAccount", "test-load")
    assert account["metadata"]["annotations"] == {
        "eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/loadgen"
    }
    assert _pod(render, "test-load-worker", case="everything")["serviceAccountName"] == "test-load"
    bare = render("loadgen", case="bare")
    assert bare.of("ServiceAccount") == []
    assert _pod(render, "bare-worker", case="bare")["serviceAccountName"] == "load"


def test_the_notes_wait_for_the_workers_before_their_policies_go(render: Render, tmp_path: Path) -> None:
    *_, stop = notes("loadgen", {}, tmp_path).split("To stop")
    commands = [line.split() for line in stop.splitlines() if line.startswith("  ")]
    assert [words[:2] for words in commands] == [["kubectl", "scale"], ["kubectl", "wait"], ["helm", "uninstall"]]
    rendered = render("loadgen")
    worker = rendered.one("Deployment", commands[0][4].removeprefix("deployment/"))
    wanted = dict(each.split("=") for each in commands[1][commands[1].index("-l") + 1].split(","))
    assert wanted.items() <= worker["spec"]["template"]["metadata"]["labels"].items()
    others = rendered.one("Deployment", "test-loadgen-master")["spec"]["template"]["metadata"]["labels"]
    assert not wanted.items() <= others.items()
    seconds = worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert commands[1][-1] == f"--timeout={seconds + 30}s"


def test_the_pod_of_the_audit_is_restricted_and_may_be_where_the_others_are(tmp_path: Path) -> None:
    values = {
        "ledger": {"s3": "s3://lake/_ledger"},
        "envFrom": [{"configMapRef": {"name": "local-aws"}}],
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "priorityClassName": "batch",
    }
    overrides = re.search(r"--overrides='(.*)'", notes("loadgen", values, tmp_path))
    assert overrides is not None
    pod = json.loads(overrides[1])["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["envFrom"] == values["envFrom"]
    # A quota of memory takes no pod without a limit.
    assert container["resources"]["limits"] == {"memory": "4Gi"}
    assert {key: pod.get(key) for key in ("imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName")} == {
        "imagePullSecrets": values["imagePullSecrets"],
        "nodeSelector": None,
        "tolerations": values["tolerations"],
        "priorityClassName": "batch",
    }
