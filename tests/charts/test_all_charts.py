"""What holds for all charts, with all their ci/*.yaml."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rendering import CHARTS, KUBERNETES, Render, Rendered, command, containers, ours, pods, run, template
from rendering.schemas import LOCATION, write_api_schemas, write_crd_schemas

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["lakestream", "loadgen", "local-aws"]
Case = tuple[str, str]
pytestmark = pytest.mark.charts


@pytest.fixture(name="rendered")
def _rendered(case: Case, render: Render) -> Rendered:
    return render(case[0], case=case[1])


@pytest.fixture(scope="session")
def openapi() -> dict[str, Any]:
    done = run(command("kubectl"), "get", "--raw", "/openapi/v2")
    assert done.returncode == 0, f"a cluster is needed, for Kubernetes' own schemas: {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _conforms(objects: list[dict[str, Any]], folder: Path) -> None:
    text = yaml.safe_dump_all(objects)
    location = f"{folder}/{LOCATION}"
    done = subprocess.run(
        [command("kubeconform"), "-summary", "-schema-location", location, "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Valid: {len(objects)}, Invalid: 0, Errors: 0, Skipped: 0" in done.stdout


def test_charts_pass_helms_linter(case: Case) -> None:
    values = CHARTS / case[0] / "ci" / f"{case[1]}.yaml"
    done = run(command("helm"), "lint", "--strict", str(CHARTS / case[0]), "-f", str(values))
    assert done.returncode == 0, done.stdout


def test_objects_conform_to_kubernetes_schemas(rendered: Rendered, openapi: dict[str, Any], tmp_path: Path) -> None:
    # These are the Prometheus Operator's, whose CRDs are not at hand; tests of their own look at them.
    objects = [each for each in rendered.objects if each["kind"] not in ("PodMonitor", "PrometheusRule")]
    kinds = {(each["apiVersion"], each["kind"]) for each in objects}
    write_api_schemas(openapi, kinds, tmp_path)
    _conforms(objects, tmp_path)


def test_a_misspelt_field_does_not_conform(render: Render, openapi: dict[str, Any], tmp_path: Path) -> None:
    (service,) = render("loadgen").of("Service")
    write_api_schemas(openapi, {("v1", "Service")}, tmp_path)
    _conforms([service], tmp_path)
    with pytest.raises(AssertionError, match="publishNotReadyAdresses"):
        _conforms([service | {"spec": service["spec"] | {"publishNotReadyAdresses": True}}], tmp_path)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_conform_to_the_crds_schema(example: Path, render: Render, tmp_path: Path) -> None:
    (crd,) = render("lakestream").of("CustomResourceDefinition")
    write_crd_schemas(crd, tmp_path)
    stream = yaml.safe_load(example.read_text("utf-8"))
    _conforms([stream], tmp_path)
    with pytest.raises(AssertionError, match="triger"):
        _conforms([stream | {"spec": stream["spec"] | {"triger": {}}}], tmp_path)


def test_pods_are_restricted(rendered: Rendered) -> None:
    assert pods(rendered)
    for name, pod in pods(rendered):
        for container in containers(pod):
            where = f"{name}/{container['name']}"
            both = pod["securityContext"] | container["securityContext"]
            assert both["runAsNonRoot"] is True, where
            assert both["allowPrivilegeEscalation"] is False, where
            assert both["readOnlyRootFilesystem"] is True, where
            assert both["capabilities"] == {"drop": ["ALL"]}, where
            assert both["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert [volume for volume in pod.get("volumes", []) if "hostPath" in volume] == []


@pytest.mark.parametrize("chart", NAMES)
def test_users_may_be_left_to_openshift(chart: str, render: Render) -> None:
    values: dict[str, Any] = {"podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))}
    if chart == "lakestream":
        values = {"operator": values, "sparkOperator": {"enabled": False}}
    for _, pod in pods(render(chart, values)):
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }


@pytest.mark.parametrize("chart", ["lakestream", "loadgen"])
def test_hooks_bear_the_labels_that_keep_a_service_mesh_away(chart: str, render: Render) -> None:
    rendered = render(chart, case="everything")
    hooks = [each["spec"]["template"] for each in rendered.of("Job")] + rendered.of("Pod")
    assert hooks
    for metadata in (each["metadata"] for each in hooks):
        assert metadata["labels"]["team"] == "data"
        assert metadata["annotations"]["example.com/team"] == "data"


def test_hooks_run_where_the_operator_does(render: Render) -> None:
    rendered = render("lakestream", case="everything")
    operator = rendered.one("Deployment", "test-lake-operator")["spec"]["template"]["spec"]
    for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"):
        found = [pod.get(field) for name, pod in pods(rendered) if "spark-operator" not in name]
        assert found == [operator[field]] * 3, field


@pytest.mark.parametrize("chart", NAMES)
def test_all_pods_have_the_priority_class_that_is_asked_for(chart: str, render: Render) -> None:
    found = [pod.get("priorityClassName") for _, pod in pods(Rendered(tuple(ours(render(chart, case="everything")))))]
    assert set(found) == {"system-cluster-critical"}
    assert not any("priorityClassName" in pod for _, pod in pods(render(chart)))


def test_containers_ask_for_what_they_need_and_bound_their_memory(rendered: Rendered) -> None:
    for name, pod in pods(rendered):
        for container in containers(pod):
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys(), (name, container["name"])
            assert "memory" in resources["limits"], (name, container["name"])
            assert "cpu" not in resources["limits"], "a limit of CPU only makes latencies worse"


def test_objects_say_what_they_belong_to(case: Case, rendered: Rendered) -> None:
    for each in ours(rendered):
        if each["kind"] == "CustomResourceDefinition":
            continue
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "test", each
        assert labels["app.kubernetes.io/part-of"] == "lakestream", each
        assert labels["helm.sh/chart"].startswith(f"{case[0]}-"), each


def test_names_are_short_enough_for_pods_and_labels(case: Case) -> None:
    values = CHARTS / case[0] / "ci" / f"{case[1]}.yaml"
    release = "r" * 53
    done = run(
        command("helm"), "template", release, str(CHARTS / case[0]), f"--kube-version={KUBERNETES}", "-f", str(values)
    )
    assert done.returncode == 0, done.stderr
    found = Rendered(tuple(each for each in yaml.safe_load_all(done.stdout) if each))
    names = [each["metadata"]["name"] for each in ours(found)]
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", name)] == []


def _labels(rendered: Rendered) -> list[dict[str, str]]:
    """Of all pods."""
    templates = [each["spec"]["template"] for kind in ("Deployment", "Job") for each in rendered.of(kind)]
    return [each["metadata"]["labels"] for each in [*templates, *rendered.of("Pod")]]


def _selected(policy: dict[str, Any]) -> list[dict[str, str]]:
    """Labels by any of which a NetworkPolicy selects its pods."""
    selector = policy["spec"]["podSelector"]
    found: list[dict[str, str]] = [selector["matchLabels"]]
    for one in selector.get("matchExpressions", []):
        assert one["operator"] == "In"
        found = [each | {one["key"]: value} for each in found for value in one["values"]]
    return found


def test_where_nobody_may_go_out_by_default_each_pod_has_a_policy_that_says_where_to(rendered: Rendered) -> None:
    policies = rendered.of("NetworkPolicy")
    assert all(policy["spec"]["policyTypes"] == ["Ingress", "Egress"] for policy in policies)
    selected = [each for policy in policies for each in _selected(policy)]
    pods_of_ours = [each for each in _labels(rendered) if each.get("app.kubernetes.io/part-of") == "lakestream"]
    alone = [each for each in pods_of_ours if not any(one.items() <= each.items() for one in selected)]
    assert alone == ([] if policies else pods_of_ours)


def test_selectors_find_pods_of_one_component(rendered: Rendered) -> None:
    labels = _labels(rendered)
    selectors = [each["spec"]["selector"] for each in rendered.of("Service")]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        selectors += [each["spec"]["selector"]["matchLabels"] for each in rendered.of(kind)]
    selectors += [each for policy in rendered.of("NetworkPolicy") for each in _selected(policy)]
    assert selectors
    # Drivers' pods are made by the operator.
    for selector in [one for one in selectors if one.get("spark-role") != "driver"]:
        assert "app.kubernetes.io/component" in selector
        found = [each for each in labels if selector.items() <= each.items()]
        assert len(found) == 1, selector


def test_ports_are_those_of_the_pods(rendered: Rendered) -> None:
    for service in rendered.of("Service"):
        (deployment,) = [
            each
            for each in rendered.of("Deployment")
            if service["spec"]["selector"].items() <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        named = {
            port["name"]
            for each in containers(deployment["spec"]["template"]["spec"])
            for port in each.get("ports", [])
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_accounts_that_pods_run_as_are_there_or_somebody_elses(case: Case, rendered: Rendered) -> None:
    made = {each["metadata"]["name"] for each in rendered.of("ServiceAccount")}
    used = {pod["serviceAccountName"] for _, pod in pods(rendered)}
    assert used <= made or case[1] == "bare"


def test_only_the_operators_get_tokens_of_the_api_server(case: Case, rendered: Rendered) -> None:
    for _, pod in pods(rendered):
        assert pod["automountServiceAccountToken"] is (case[0] == "lakestream")


def test_there_is_a_helm_test(case: Case, rendered: Rendered) -> None:
    hooks = [each for each in rendered.of("Pod") if each["metadata"]["annotations"]["helm.sh/hook"] == "test"]
    assert len(hooks) == 1
    assert hooks[0]["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"


@pytest.mark.parametrize("chart", NAMES)
def test_unknown_values_are_refused_at_every_depth(chart: str, render: Render) -> None:
    def places(values: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> list[list[str]]:
        schema = root["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if schema.get("additionalProperties") is not False:
            return []
        deeper = [
            [key, *place]
            for key, value in values.items()
            if isinstance(value, dict)
            for place in places(value, schema["properties"][key], root)
        ]
        return [[], *deeper]

    schema = json.loads((CHARTS / chart / "values.schema.json").read_text("utf-8"))
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    found = places(values, schema, schema)
    assert len(found) > 5
    for place in found:
        unknown: dict[str, Any] = {"misspelt": 1}
        for key in reversed(place):
            unknown = {key: unknown}
        with pytest.raises(ValueError, match="additional properties 'misspelt' not allowed"):
            render(chart, unknown)


@pytest.mark.parametrize("chart", NAMES)
def test_values_that_are_null_are_left_out_or_told(chart: str, render: Render) -> None:
    def nulls(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for key, value in values.items():
            if isinstance(value, dict):
                yield {key: None}
                yield from ({key: deeper} for deeper in nulls(value))

    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    told = []
    for one in nulls({**values, "sparkOperator": {}} if chart == "lakestream" else values):
        try:
            render(chart, one)
        except ValueError as error:
            told.append(str(error))
    assert [error for error in told if "missing property" not in error] == []
    assert len(told) > 5


@pytest.mark.parametrize("chart", NAMES)
def test_a_switch_that_is_null_is_off(chart: str, render: Render) -> None:
    """As one that `helm upgrade --reuse-values` does not have yet."""

    def off(values: dict[str, Any]) -> dict[str, Any]:
        deeper = {key: off(value) for key, value in values.items() if isinstance(value, dict)}
        return {key: found for key, found in deeper.items() if found} | {
            key: None for key, value in values.items() if value is False
        }

    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    switches = off({**values, "sparkOperator": {}})
    assert switches
    assert render(chart, switches) == render(chart)


@pytest.mark.parametrize("chart", ["lakestream", "loadgen"])
@pytest.mark.parametrize("name", ["2orders", "orders.eu", "Orders"])
def test_names_that_no_service_may_have_are_refused(chart: str, name: str, render: Render) -> None:
    with pytest.raises(ValueError, match=f"{name} begins the name of a Service"):
        render(chart, {"fullnameOverride": name})


@pytest.mark.parametrize("chart", NAMES)
def test_names_that_look_like_numbers_stay_texts(chart: str) -> None:
    """Labels of another type are refused by the API server, as are names of accounts, claims and classes."""
    named: dict[str, Any] = {"nameOverride": "2024", "fullnameOverride": "lake", "serviceAccount": {"name": "2024"}}
    values = {
        "lakestream": named | {"operator": {"priorityClassName": "2024"}, "sparkOperator": {"enabled": False}},
        "loadgen": named | {"scenario": {"configMap": "2024"}, "ledger": {"existingClaim": "2024"}},
        "local-aws": {
            "kinesis": {"persistence": {"enabled": True, "existingClaim": "2024"}},
            "s3": {"persistence": {"enabled": True, "storageClassName": "2024"}},
        },
    }
    rendered = template(chart, json.dumps(values[chart]), release="2024")
    text = yaml.safe_dump_all(each for each in rendered.objects if each["kind"] != "CustomResourceDefinition")
    assert "'2024'" in text
    assert re.findall(r".*: 2024\n", text) == []


@pytest.mark.parametrize("chart", NAMES)
def test_the_default_tag_is_the_charts_version_of_our_images(chart: str, render: Render) -> None:
    version = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text("utf-8"))["appVersion"]
    images = {
        each["image"] for _, pod in pods(render(chart)) for each in containers(pod) if "lakestream/" in each["image"]
    }
    assert images
    assert {image.rpartition(":")[2] for image in images} == {version}


@pytest.mark.parametrize("chart", NAMES)
def test_images_may_be_named_by_their_digest(chart: str, render: Render) -> None:
    digest = f"sha256:{'0a' * 32}"
    image: dict[str, Any] = {"image": {"digest": digest}}
    values = {"lakestream": {"operator": image}, "loadgen": image, "local-aws": {"kinesis": image, "s3": image}}
    images = {each["image"] for _, pod in pods(render(chart, values[chart])) for each in containers(pod)}
    named = [image for image in images if image.endswith(f"@{digest}")]
    assert named
    assert not [image for image in named if ":" in image.removesuffix(f"@{digest}")]
    if chart != "lakestream":
        assert len(named) == len(images)


@pytest.mark.parametrize("digest", ["sha256:abc", "latest"])
def test_a_digest_that_is_none_is_refused(digest: str, render: Render) -> None:
    with pytest.raises(ValueError, match="digest"):
        render("loadgen", {"image": {"digest": digest}})


@pytest.mark.parametrize(
    ("chart", "path"),
    [
        ("loadgen", "load.spawnRate"),
        ("loadgen", "workers.replicas"),
        ("loadgen", "workers.autoscaling.minReplicas"),
        ("loadgen", "scenario.key"),
        ("local-aws", "region"),
        ("local-aws", "credentials.secretAccessKey"),
        ("local-aws", "kinesis.transitionSeconds"),
        ("local-aws", "s3.persistence.size"),
        ("local-aws", "kinesis.limits"),
        ("local-aws", "s3.image.tag"),
        ("loadgen", "load.autostart"),
        ("loadgen", "terminationGracePeriodSeconds"),
        ("loadgen", "podSecurityContext"),
        ("lakestream", "crd.keep"),
        ("lakestream", "rbac.create"),
        ("lakestream", "operator.guardUninstall"),
        ("lakestream", "operator.podSecurityContext"),
        ("lakestream", "operator.logLevel"),
        ("lakestream", "operator.uninstallTimeoutSeconds"),
    ],
)
def test_a_value_that_is_needed_may_not_be_null(chart: str, path: str, render: Render) -> None:
    """With null Helm takes a default away, and programs would be started with options that say nothing."""
    *outer, name = path.split(".")
    values: dict[str, Any] = {name: None}
    for key in reversed(outer):
        values = {key: values}
    with pytest.raises(ValueError, match=rf"{name}['\"]?\W* is required|missing propert\w+ .*{name}"):
        render(chart, values)


def test_monitors_scrape_ports_that_exist(rendered: Rendered) -> None:
    for monitor in rendered.of("PodMonitor"):
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["path"] == "/metrics"
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        if ("spark-role", "driver") in wanted:
            continue  # the operator makes these pods
        (pod,) = [
            each["spec"]["template"]["spec"]
            for each in rendered.of("Deployment")
            if wanted <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert endpoint["port"] in {port["name"] for port in pod["containers"][0]["ports"]}
