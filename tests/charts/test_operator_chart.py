"""The operator in the chart lakestream: settings, rights, health."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakestream_operator.settings import Settings, load_settings
from rendering import Render, Rendered, containers, pods

pytestmark = pytest.mark.charts
ROOT = Path(__file__).parents[2]
Rules = set[tuple[str, str, str]]


def _settings(rendered: Rendered, folder: Path, name: str = "test-lakestream-operator") -> Settings:
    path = folder / "operator.yaml"
    path.write_text(rendered.one("ConfigMap", name)["data"]["operator.yaml"], "utf-8")
    return load_settings(path)


def _rules(role: dict[str, Any]) -> Rules:
    """Group/resource, verb and name, `*` for any name."""
    return {
        (f"{group}/{resource}".lstrip("/"), verb, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ["*"])
    }


def test_the_operator_understands_its_settings(render: Render, tmp_path: Path) -> None:
    settings = _settings(render("lakestream", case="everything"), tmp_path, "test-lake-operator")
    assert settings.job.image == "lakestream/spark:1"
    assert settings.job.image_pull_secrets == ("registry",)
    assert [variable.name for variable in settings.job.env] == ["AWS_REGION", "AWS_ACCESS_KEY_ID"]
    assert settings.job.env[1].value_from is not None
    assert len(settings.job.env_from) == 2
    assert settings.job.spark_conf == {"spark.executor.extraJavaOptions": "-XX:+UseZGC"}
    assert settings.job.labels == {"example.com/cost-centre": "1234"}
    assert settings.job.driver.template == {"metadata": {"annotations": {"example.com/team": "data"}}}
    assert settings.job.executor.template["spec"]["securityContext"] == {"runAsUser": None}
    assert settings.job.cluster_role == "test-lake-driver"
    assert settings.namespaces == ()
    assert settings.log.level == "DEBUG"
    assert settings.leader_election.lease_name == "test-lake-operator"


def test_the_operator_understands_the_default_settings(render: Render, tmp_path: Path) -> None:
    settings = _settings(render("lakestream"), tmp_path)
    assert (settings.job.env, settings.job.env_from, settings.job.spark_conf) == ((), (), {})
    assert settings.job.driver.template == settings.job.executor.template == {}
    assert settings.job.termination_grace_period_seconds == 120


def test_no_pod_has_a_user_of_its_own_on_openshift(render: Render, tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "examples/values/openshift.yaml").read_text("utf-8"))
    rendered = render("lakestream", values)
    for _, pod in pods(rendered):
        for part in (pod, *containers(pod)):
            assert not part.get("securityContext", {}).keys() & {"runAsUser", "runAsGroup", "fsGroup"}
    job = _settings(rendered, tmp_path).job
    for given in (job.driver.template, job.executor.template):
        assert given["spec"]["securityContext"] == {"runAsUser": None, "fsGroup": None}


def test_the_operator_understands_settings_that_are_missing(render: Render, tmp_path: Path) -> None:
    values: dict[str, Any] = {"job": dict.fromkeys(("imagePullSecrets", "env", "envFrom", "sparkConf"))}
    values["job"] |= {"driver": None, "executor": {"template": None}}
    settings = _settings(render("lakestream", {**values, "operator": {"namespaces": None}}), tmp_path)
    assert (settings.job.env, settings.job.env_from, settings.job.spark_conf, settings.namespaces) == ((), (), {}, ())


@pytest.mark.parametrize("text", ["=", "<<", "yes", "1:30", "2026-01-01", "a\nb", "a: b #c", "<a&b>", "\u2028"])
def test_it_is_told_each_text_as_it_is(text: str, render: Render, tmp_path: Path) -> None:
    values = {"job": {"env": [{"name": "A", "value": text}], "sparkConf": {"spark.a": text}}}
    settings = _settings(render("lakestream", values), tmp_path)
    assert settings.job.env[0].value == text
    assert settings.job.spark_conf == {"spark.a": text}


def test_it_is_told_the_digest_of_the_image_of_the_jobs(render: Render, tmp_path: Path) -> None:
    digest = f"sha256:{'0a' * 32}"
    settings = _settings(render("lakestream", {"job": {"image": {"digest": digest}}}), tmp_path)
    assert settings.job.image == f"lakestream/spark@{digest}"


def test_it_is_told_its_namespaces(render: Render, tmp_path: Path) -> None:
    assert _settings(render("lakestream", case="namespaced"), tmp_path).namespaces == ("orders", "clicks")


def test_a_variable_that_is_given_twice_is_refused_before_the_operator_does(render: Render) -> None:
    with pytest.raises(ValueError, match=r"job\.env: A is given twice; give it once"):
        render("lakestream", {"job": {"env": [{"name": name, "value": "x"} for name in ("A", "B", "A")]}})


def test_its_ports_are_those_of_its_settings(render: Render, tmp_path: Path) -> None:
    rendered = render("lakestream")
    settings = _settings(rendered, tmp_path)
    (container,) = rendered.one("Deployment", "test-lakestream-operator")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": settings.health.port, "metrics": settings.metrics.port}
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


def test_a_change_of_settings_starts_it_anew(render: Render) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = render("lakestream", values).one("Deployment", "test-lakestream-operator")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum({}) != checksum({"job": {"env": [{"name": "AWS_REGION", "value": "eu-west-1"}]}})


def test_one_operator_acts_and_its_node_can_be_drained(render: Render) -> None:
    rendered = render("lakestream")
    assert rendered.one("Deployment", "test-lakestream-operator")["spec"]["replicas"] == 1
    spec = render("lakestream", {"operator": {"replicas": 3}}).one("Deployment", "test-lakestream-operator")["spec"]
    assert spec["replicas"] == 3
    assert [each["metadata"]["name"] for each in rendered.of("PodDisruptionBudget")] == []


def test_in_an_upgrade_the_next_operator_is_ready_before_the_one_before_ends(render: Render) -> None:
    for replicas in (1, 3):
        rendered = render("lakestream", {"operator": {"replicas": replicas}})
        # By default a Deployment surges by a quarter of its pods, rounded up, and does without a quarter, rounded down.
        assert rendered.one("Deployment", "test-lakestream-operator")["spec"]["strategy"] == {"type": "RollingUpdate"}


def test_its_rights_are_these_and_no_others(render: Render) -> None:
    both = {"get", "list", "watch"}
    change = {"create", "patch", "delete"}
    expected = {("lakestream.dev/lakestreams", verb, "*") for verb in both | {"patch"}}
    expected |= {
        ("lakestream.dev/lakestreams/status", "patch", "*"),
        ("lakestream.dev/lakestreams/finalizers", "update", "*"),
    }
    expected |= {("sparkoperator.k8s.io/sparkapplications", verb, "*") for verb in both | {"create", "delete"}}
    for resource in ("configmaps", "serviceaccounts", "rbac.authorization.k8s.io/rolebindings"):
        expected |= {(resource, verb, "*") for verb in both | change}
    expected |= {("pods", verb, "*") for verb in both | {"delete"}}
    expected |= {("events", "create", "*"), ("resourcequotas", "list", "*")}
    expected |= {("rbac.authorization.k8s.io/clusterroles", "bind", "test-lakestream-driver")}
    assert _rules(render("lakestream").one("ClusterRole", "test-lakestream-operator")) == expected


def test_rights_in_named_namespaces_are_the_same_and_nowhere_else(render: Render) -> None:
    wide = _rules(render("lakestream").one("ClusterRole", "test-lakestream-operator"))
    rendered = render("lakestream", case="namespaced")
    names = {each["metadata"]["name"] for each in rendered.of("ClusterRole")}
    # Two releases of one name, in two namespaces, share none.
    assert names == {f"test-lakestream-lake-{role}" for role in ("driver", "edit", "view")}
    assert rendered.of("ClusterRoleBinding") == []
    roles = [each for each in rendered.of("Role") if each["metadata"]["name"] == "test-lakestream-operator"]
    assert [role["metadata"]["namespace"] for role in roles] == ["orders", "clicks"]
    wide = {(what, verb, name.replace("lakestream-driver", "lakestream-lake-driver")) for what, verb, name in wide}
    assert all(_rules(role) == wide for role in roles)
    bindings = [each for each in rendered.of("RoleBinding") if each["metadata"]["name"] == "test-lakestream-operator"]
    assert [each["metadata"]["namespace"] for each in bindings] == ["orders", "clicks"]
    for binding in bindings:
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "test-lakestream-operator", "namespace": "lake"}
        ]


def test_who_may_edit_a_namespace_may_edit_its_lakestreams(render: Render) -> None:
    rendered = render("lakestream")
    edit, view = (rendered.one("ClusterRole", f"test-lakestream-{role}") for role in ("edit", "view"))
    assert {label for label in edit["metadata"]["labels"] if "aggregate" in label} == {
        "rbac.authorization.k8s.io/aggregate-to-edit",
        "rbac.authorization.k8s.io/aggregate-to-admin",
    }
    assert {verb for _, verb, _ in _rules(edit)} == {"create", "update", "patch", "delete"}
    assert "rbac.authorization.k8s.io/aggregate-to-view" in view["metadata"]["labels"]
    assert {verb for _, verb, _ in _rules(view)} == {"get", "list", "watch"}
    assert {what for what, _, _ in _rules(edit) | _rules(view)} == {"lakestream.dev/lakestreams"}


def test_it_leads_by_one_lease_in_its_own_namespace(render: Render, tmp_path: Path) -> None:
    rendered = render("lakestream")
    role = rendered.one("Role", "test-lakestream-operator-leader")
    assert "namespace" not in role["metadata"]
    lease = _settings(rendered, tmp_path).leader_election.lease_name
    leases = "coordination.k8s.io/leases"
    assert _rules(role) == {(leases, "create", "*"), (leases, "get", lease), (leases, "update", lease)}


def test_every_role_is_bound_to_its_account(render: Render) -> None:
    rendered = render("lakestream")
    account = rendered.one("ServiceAccount", "test-lakestream-operator")["metadata"]["name"]
    for kind, name in (
        ("ClusterRoleBinding", "test-lakestream-operator"),
        ("RoleBinding", "test-lakestream-operator-leader"),
    ):
        binding = rendered.one(kind, name)
        assert [subject["name"] for subject in binding["subjects"]] == [account]
        rendered.one(binding["roleRef"]["kind"], binding["roleRef"]["name"])


def test_roles_and_accounts_can_be_somebody_elses(render: Render) -> None:
    rendered = render("lakestream", case="bare")
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "NetworkPolicy"):
        assert rendered.of(kind) == []
    assert rendered.one("Deployment", "bare-operator")["spec"]["template"]["spec"]["serviceAccountName"] == "lake"


def test_who_may_ask_it_and_whom_it_may_ask(render: Render) -> None:
    policy = render("lakestream", case="everything").one("NetworkPolicy", "test-lake-operator")["spec"]
    # DNS and the API server, and nothing in AWS.
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [
        [53, 53, 5353, 5353],
        [443, 6443, 8443, 16443],
    ]
    assert [rule["ports"][0]["port"] for rule in policy["ingress"]] == ["health", "metrics"]
    (rule,) = render("lakestream").one("NetworkPolicy", "test-lakestream-operator")["spec"]["ingress"]
    assert rule["ports"][0]["port"] == "health"


def test_hooks_may_ask_the_api_server_and_the_operator_how_it_is(render: Render) -> None:
    rendered = render("lakestream")
    policy = rendered.one("NetworkPolicy", "test-lakestream-operator-hooks")["spec"]
    assert policy["ingress"] == []
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [
        [53, 53, 5353, 5353],
        [443, 6443, 8443, 16443],
        ["health"],
    ]
    operator = rendered.one("NetworkPolicy", "test-lakestream-operator")["spec"]
    assert policy["egress"][2]["to"] == [{"podSelector": operator["podSelector"]}]
    (test,) = operator["ingress"][0]["from"]
    assert test["podSelector"]["matchLabels"].items() <= rendered.of("Pod")[0]["metadata"]["labels"].items()


@pytest.mark.parametrize("ports", [[], None])
def test_no_ports_to_reach_are_refused_for_they_would_be_all(ports: list[int] | None, render: Render) -> None:
    with pytest.raises(ValueError, match="egressPorts"):
        render("lakestream", {"networkPolicy": {"egressPorts": ports}})


def test_a_namespace_may_have_digits_alone(render: Render) -> None:
    values = {"operator": {"namespaces": ["2026"]}, "sparkOperator": {"enabled": False}}
    found = [each for kind in ("Role", "RoleBinding") for each in render("lakestream", values).of(kind)]
    served = [each["metadata"]["namespace"] for each in found if "namespace" in each["metadata"]]
    assert served == ["2026", "2026"]
