"""The settings file and the credentials."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakestream_operator.adapters.credentials import Credentials, credentials_of
from lakestream_operator.errors import SettingsError
from lakestream_operator.settings import load_settings

MINIMAL = "job: {image: 'lakestream/spark:1', clusterRole: driver}\n"


def _written(folder: Path, text: str) -> Path:
    path = folder / "operator.yaml"
    path.write_text(text)
    return path


def test_a_minimal_file_is_enough(tmp_path: Path) -> None:
    settings = load_settings(_written(tmp_path, MINIMAL))
    assert (settings.job.image, settings.namespaces, settings.leader_election.enabled) == (
        "lakestream/spark:1",
        (),
        True,
    )


def test_what_a_values_file_leaves_empty_is_not_given(tmp_path: Path) -> None:
    text = "job: {image: i, clusterRole: driver, env: null, sparkConf: null}\nnamespaces: null\nlog: {level: null}\n"
    settings = load_settings(_written(tmp_path, text))
    assert (settings.job.env, settings.job.spark_conf, settings.namespaces, settings.log.level) == ((), {}, (), "INFO")


def test_what_is_null_in_a_template_is_given(tmp_path: Path) -> None:
    """It takes a field away."""
    text = "job: {image: i, clusterRole: c, driver: {template: {spec: {securityContext: {runAsUser: null}}}}}"
    settings = load_settings(_written(tmp_path, text))
    assert settings.job.driver.template == {"spec": {"securityContext": {"runAsUser": None}}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file"),
        ("job: {}", "job.image"),
        (MINIMAL + "namespace: [lake]", "namespace"),
        (MINIMAL + "log: {level: LOUD}", "log.level"),
        (MINIMAL + "health: {port: 70000}", "health.port"),
        (MINIMAL.replace("}", ", env: [{name: A}]}"), r"job.env\[0\].value: needs exactly one of value"),
        (
            MINIMAL.replace("}", ", env: [{name: A, value: x}, {name: B, value: x}, {name: A, value: y}]}"),
            r"job.env\[2\].name: 'A' is given twice; give it once",
        ),
        (
            MINIMAL.replace("}", ", driver: {template: {spec: {volumes: [{name: tmp}]}}}}"),
            "job.driver.template.spec.volumes.tmp: is LakeStream's own; choose another name",
        ),
        (
            MINIMAL.replace("}", ", executor: {template: {metadata: {labels: {team: data}}}}}"),
            "job.executor.template.metadata.labels: use job.labels",
        ),
        *[
            (
                MINIMAL.replace(
                    "}", f", driver: {{template: {{spec: {{containers: [{{name: {name}, {field}: []}}]}}}}}}}}"
                ),
                f"job.driver.template.spec.containers.{name}.{field}: use job.{field}",
            )
            for name, field in (("spark-kubernetes-driver", "env"), ("spark-kubernetes-driver", "envFrom"))
        ],
        (
            "job: {image: i, clusterRole: c, driver: {template: {spec: {containers: null}}}}",
            "must be a list of mappings",
        ),
        ("job: [", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_field_that_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load_settings(_written(tmp_path, text))


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("spark.speculation", "two attempts at a task must not write at a time"),
        ("spark.executor.memoryOverhead", "use spec.resources and spec.kubernetes"),
        ("spark.kubernetes.driver.pod.name", "the operator sets it"),
        ("network.timeout", "is no setting of Spark"),
    ],
)
def test_sparks_configuration_may_have_no_more_than_a_lakestreams(tmp_path: Path, key: str, says: str) -> None:
    job = {"image": "lakestream/spark:1", "clusterRole": "driver", "sparkConf": {"spark.network.timeout": "60s"}}
    assert load_settings(_written(tmp_path, yaml.safe_dump({"job": job}))).job.spark_conf == job["sparkConf"]
    with pytest.raises(SettingsError) as caught:
        load_settings(_written(tmp_path, yaml.safe_dump({"job": {**job, "sparkConf": {key: "true"}}})))
    assert f" job.sparkConf.{key}: " in str(caught.value)
    assert says in str(caught.value)


def test_a_file_that_is_no_text_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "operator.yaml"
    path.write_bytes(MINIMAL.encode("utf-16"))
    with pytest.raises(SettingsError, match=r"operator\.yaml is not valid YAML: 'utf-8' codec can't decode"):
        load_settings(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        load_settings(tmp_path / "nowhere.yaml")


def _kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me", "namespace": "mine"}}],
        "clusters": [{"name": "it", "cluster": {"server": "https://host:6443/", **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def _found(path: Path, environ: Mapping[str, str] | None = None) -> Credentials:
    async with credentials_of({"KUBECONFIG": str(path), **(environ or {})}) as found:
        return found


def test_certificates_are_in_the_kubeconfig_or_beside_it(tmp_path: Path, run: Any) -> None:
    (tmp_path / "ca.crt").write_text("authority")
    data = base64.b64encode(b"certificate").decode()
    path = _kubeconfig(
        tmp_path,
        {"certificate-authority": "ca.crt"},
        {"client-certificate-data": data, "client-key-data": data},
    )
    found = run(_found(path))
    assert (found.host, found.ssl_ca_cert) == ("https://host:6443", str(tmp_path / "ca.crt"))
    assert Path(found.cert_file).read_text() == Path(found.key_file).read_text() == "certificate"


def test_a_token_is_in_a_file_or_printed_by_a_command(tmp_path: Path, run: Any) -> None:
    (tmp_path / "token").write_text("first")
    assert _token(run(_found(_kubeconfig(tmp_path, {}, {"tokenFile": "token"})))) == "Bearer first"
    api_version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": api_version, "kind": "ExecCredential", "status": {"token": "second"}}
    command = {"apiVersion": api_version, "command": "echo", "args": [json.dumps(answer)]}
    assert _token(run(_found(_kubeconfig(tmp_path, {}, {"exec": command})))) == "Bearer second"
    failing = {"apiVersion": api_version, "command": "false"}
    with pytest.raises(SettingsError, match="none of user me can be used"):
        run(_found(_kubeconfig(tmp_path, {}, {"exec": failing})))


def _token(found: Credentials) -> str:
    return found.api_key["BearerToken"]


def test_a_context_that_is_not_there_is_named(tmp_path: Path, run: Any) -> None:
    path = _kubeconfig(tmp_path, {}, {})
    path.write_text(path.read_text().replace("name: here", "name: there"))
    with pytest.raises(SettingsError, match="here"):
        run(_found(path))


def test_a_kubeconfig_that_is_not_there_or_not_yaml_is_told(tmp_path: Path, run: Any) -> None:
    with pytest.raises(SettingsError, match="credentials"):
        run(_found(tmp_path / "nowhere"))
    (tmp_path / "broken").write_text("a: [")
    with pytest.raises(SettingsError, match="credentials"):
        run(_found(tmp_path / "broken"))


def test_the_kubeconfig_wins_over_the_pod(tmp_path: Path, run: Any) -> None:
    path = _kubeconfig(tmp_path, {}, {"token": "mine"})
    assert _token(run(_found(path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}))) == "Bearer mine"
