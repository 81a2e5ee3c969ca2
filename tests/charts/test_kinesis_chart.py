"""The local Kinesis of the chart local-aws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from lakestream_localkinesis import cli
from rendering import Render, containers

pytestmark = pytest.mark.charts
PORT = 4567


def test_the_server_takes_its_arguments(render: Render) -> None:
    deployment = render("local-aws", case="everything").one("Deployment", "localkinesis")
    (container,) = containers(deployment["spec"]["template"]["spec"])
    command, *arguments = container["args"]
    group = typer.main.get_command(cli.app)
    serve = group.commands[command]  # type: ignore[attr-defined]
    options = serve.make_context("serve", arguments).params
    assert options["host"] == "::"
    assert options["port"] == PORT
    assert options["region"] == "eu-west-1"
    assert options["transition"] == 1.5
    assert options["limits"] is False
    assert options["data"] == Path("/data/kinesis")
    streams = {cli.InitialStream.parse(text) for text in options["create_stream"]}
    assert {(stream.name, stream.mode.name, stream.shards) for stream in streams} == {
        ("orders", "PROVISIONED", 4),
        ("clicks", "ON_DEMAND", 4),
    }


def test_there_is_one_server_and_never_two(render: Render) -> None:
    spec = render("local-aws").one("Deployment", "localkinesis")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def _pod(render: Render, **values: Any) -> dict[str, Any]:
    pod: dict[str, Any] = render("local-aws", **values).one("Deployment", "localkinesis")["spec"]["template"]["spec"]
    return pod


def test_records_are_in_memory_or_in_a_claim(render: Render) -> None:
    assert "volumes" not in _pod(render)
    assert not [argument for argument in _pod(render)["containers"][0]["args"] if argument.startswith("--data")]
    kept = _pod(render, case="everything")
    assert kept["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "localkinesis"}}]
    assert kept["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    claim = render("local-aws", case="everything").one("PersistentVolumeClaim", "localkinesis")
    assert claim["spec"]["storageClassName"] == "gp3"
    assert claim["spec"]["resources"]["requests"]["storage"] == "10Gi"
    assert _pod(render, case="claim")["volumes"][0]["persistentVolumeClaim"]["claimName"] == "records"


def test_claims_stay_when_the_release_goes(render: Render) -> None:
    claims = render("local-aws", case="everything").of("PersistentVolumeClaim")
    assert {claim["metadata"]["name"] for claim in claims} == {"localkinesis", "s3"}
    assert {claim["metadata"]["annotations"]["helm.sh/resource-policy"] for claim in claims} == {"keep"}


def test_its_service_is_what_the_config_map_names(render: Render) -> None:
    rendered = render("local-aws")
    service = rendered.one("Service", "localkinesis")
    assert [port["port"] for port in service["spec"]["ports"]] == [PORT]
    assert rendered.one("ConfigMap", "local-aws")["data"] == {
        "AWS_ENDPOINT_URL_KINESIS": f"http://localkinesis.lake.svc:{PORT}",
        "AWS_ENDPOINT_URL_S3": "http://s3.lake.svc:7070",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    secret = rendered.one("Secret", "local-aws")["stringData"]
    assert set(secret) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_it_is_probed_where_it_answers(render: Render) -> None:
    (container,) = render("local-aws").one("Deployment", "localkinesis")["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "http"}


def test_nothing_but_calls_comes_in_and_nothing_goes_out(render: Render) -> None:
    policy = render("local-aws", case="everything").one("NetworkPolicy", "local-aws-kinesis")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": PORT}]
    *callers, tests = rule["from"]
    assert callers == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "lake"}}}]
    assert tests["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "test"
    (rule,) = render("local-aws").one("NetworkPolicy", "local-aws-kinesis")["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {}}, tests]
    assert render("local-aws", case="bare").of("NetworkPolicy") == []


def test_helm_test_may_call_both_servers(render: Render) -> None:
    rendered = render("local-aws")
    policy = rendered.one("NetworkPolicy", "local-aws-test")["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [
        [53, 53, 5353, 5353],
        [PORT, 7070],
    ]
    (server,) = policy["egress"][1]["to"]
    for name in ("localkinesis", "s3"):
        labels = rendered.one("Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert server["podSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("shards", [0, "many", 1.5])
def test_a_number_of_shards_that_is_none_is_refused(shards: object, render: Render) -> None:
    with pytest.raises(ValueError, match="/kinesis/streams/orders"):
        render("local-aws", {"kinesis": {"streams": {"orders": shards}}})


def test_the_test_has_the_resources_of_the_server(render: Render) -> None:
    # As under a quota that asks each pod for a limit of its CPU.
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    (pod,) = render("local-aws", {"kinesis": {"resources": resources}}).of("Pod")
    assert [each["resources"] for each in containers(pod["spec"])] == [resources]
