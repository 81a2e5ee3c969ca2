"""The settings file and the credentials."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakestream_operator.adapters.credentials import find_credentials, of_kubeconfig
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file"),
        ("job: {}", "job.image"),
        (MINIMAL + "namespace: [lake]", "namespace"),
        (MINIMAL + "log: {level: LOUD}", "log.level"),
        (MINIMAL + "health: {port: 70000}", "health.port"),
        ("job: [", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_field_that_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load_settings(_written(tmp_path, text))


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


def test_certificates_are_in_the_kubeconfig_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("authority")
    data = base64.b64encode(b"certificate").decode()
    path = _kubeconfig(
        tmp_path,
        {"certificate-authority": "ca.crt"},
        {"client-certificate-data": data, "client-key-data": data},
    )
    found = of_kubeconfig(path)
    assert (found.server, found.ca_data, found.namespace) == ("https://host:6443", "authority", "mine")
    assert (found.certificate, found.key) == ("certificate", "certificate")


def test_a_token_is_read_each_time_or_printed_by_a_command(tmp_path: Path, run: Any) -> None:
    (tmp_path / "token").write_text("first\n")
    found = of_kubeconfig(_kubeconfig(tmp_path, {}, {"tokenFile": "token"}))
    assert run(found.current_token()) == "first"
    (tmp_path / "token").write_text("second\n")
    assert run(found.current_token()) == "second"
    answer = '{"status": {"token": "third"}}'
    found = of_kubeconfig(_kubeconfig(tmp_path, {}, {"exec": {"command": "echo", "args": [answer]}}))
    assert run(found.current_token()) == "third"
    found = of_kubeconfig(_kubeconfig(tmp_path, {}, {"exec": {"command": "false"}}))
    with pytest.raises(SettingsError, match="false gave no token"):
        run(found.current_token())


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path, {}, {})
    path.write_text(path.read_text().replace("name: here", "name: there"))
    with pytest.raises(SettingsError, match="here"):
        of_kubeconfig(path)


def test_the_kubeconfig_wins_over_the_pod(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path, {}, {"token": "mine"})
    environment = {"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert find_credentials(environment).token == "mine"
