"""How a release of the chart lakestream is taken away: what its notes say, and the hook that guards its LakeStreams."""

from __future__ import annotations

import io
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from rendering import Render, containers, environment, notes, pods

pytestmark = pytest.mark.charts
API = "https://kubernetes.default.svc/apis/lakestream.dev/v1alpha1"
NAMESPACED = {"operator": {"namespaces": ["orders", "clicks"]}, "sparkOperator": {"enabled": False}}


def test_the_notes_delete_all_lakestreams_that_the_release_serves(tmp_path: Path) -> None:
    said = notes("lakestream", {}, tmp_path)
    assert "\n\n  kubectl delete lakestreams -A --all\n  helm uninstall test -n lake\n" in said


def test_the_notes_of_some_namespaces_leave_the_others_alone(tmp_path: Path) -> None:
    said = notes("lakestream", NAMESPACED, tmp_path)
    assert [line.strip() for line in said.splitlines() if "kubectl delete lakestreams" in line] == [
        "kubectl delete lakestreams -n orders --all",
        "kubectl delete lakestreams -n clicks --all",
    ]


def test_the_notes_take_a_refused_release_up_at_its_own_revision(tmp_path: Path) -> None:
    # Without it Helm goes back to the one before, or fails where this is the first.
    assert "\n\n  helm rollback test 1 -n lake\n" in notes("lakestream", {}, tmp_path)


def _stream(name: str, **metadata: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "orders", "name": name, **metadata}}


@pytest.fixture(name="uninstall")
def _uninstall(render: Render, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs the hook's program: ``answers`` has for each path what the API server says, one time after the other."""

    def run(values: dict[str, Any], answers: dict[str, list[list[Any] | int]]) -> None:
        def urlopen(call: urllib.request.Request, **_: Any) -> io.BytesIO:
            assert call.get_header("Authorization") == "Bearer token"
            said = answers[call.full_url.removeprefix(API)].pop(0)
            if isinstance(said, int):
                raise urllib.error.HTTPError(call.full_url, said, "", Message(), None)
            return io.BytesIO(json.dumps({"items": said}).encode())

        job = render("lakestream", values).one("Job", "test-lakestream-operator-uninstall")
        (container,) = job["spec"]["template"]["spec"]["containers"]
        monkeypatch.setenv("NAMESPACES", environment(container)["NAMESPACES"])
        monkeypatch.setattr(ssl, "create_default_context", lambda cafile: None)
        monkeypatch.setattr(urllib.request, "urlopen", urlopen)
        monkeypatch.setenv("TIMEOUT", environment(container)["TIMEOUT"])
        clock = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
        exec(container["args"][0], {"open": lambda path: io.StringIO("token")})
        assert not any(answers.values())

    return run


def test_it_waits_for_lakestreams_that_are_being_deleted(uninstall: Callable[..., None]) -> None:
    uninstall({}, {"/lakestreams": [[_stream("a", deletionTimestamp="2026-11-01T00:00:00Z")], []]})


def test_it_refuses_while_there_are_others(uninstall: Callable[..., None]) -> None:
    answers = {"/namespaces/orders/lakestreams": [[]], "/namespaces/clicks/lakestreams": [[_stream("a")]]}
    with pytest.raises(SystemExit, match="orders/a"):
        uninstall(NAMESPACED, answers)


@pytest.mark.parametrize("status", [403, 404])
def test_nothing_is_in_a_namespace_that_was_deleted(
    uninstall: Callable[..., None], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    uninstall(NAMESPACED, {"/namespaces/orders/lakestreams": [status], "/namespaces/clicks/lakestreams": [[]]})
    assert capsys.readouterr().out == f"nothing is there (status {status}): {API}/namespaces/orders/lakestreams\n"


def test_it_refuses_without_a_right_to_look(uninstall: Callable[..., None]) -> None:
    with pytest.raises(SystemExit, match="may not list LakeStreams"):
        uninstall({}, {"/lakestreams": [403]})


def test_it_waits_for_an_api_server_that_is_away(
    uninstall: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    uninstall(
        NAMESPACED, {"/namespaces/orders/lakestreams": [503, [], []], "/namespaces/clicks/lakestreams": [500, []]}
    )
    assert capsys.readouterr().out.count("does not answer") == 2


def test_it_gives_up_by_itself_so_that_its_log_says_what_it_waited_for(uninstall: Callable[..., None]) -> None:
    values = {"operator": {"uninstallTimeoutSeconds": 4}}
    leaving = [_stream("a", deletionTimestamp="2026-11-01T00:00:00Z")]
    with pytest.raises(SystemExit, match=r"^Given up after 4 s, since drivers have not ended yet: orders/a\."):
        uninstall(values, {"/lakestreams": [leaving] * 4})
    with pytest.raises(SystemExit, match=r"^Given up after 4 s, since the API server does not answer: .*503"):
        uninstall(values, {"/lakestreams": [503] * 4})


@pytest.mark.parametrize("seconds", [280, 3600])
def test_neither_its_job_nor_helm_ends_it_before(render: Render, seconds: int) -> None:
    # A pod that its Job ends is deleted, and takes along what it has logged.
    values = {} if seconds == 280 else {"operator": {"uninstallTimeoutSeconds": seconds}}
    job = render("lakestream", values).one("Job", "test-lakestream-operator-uninstall")["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert environment(container)["TIMEOUT"] == str(seconds)
    assert job["activeDeadlineSeconds"] >= seconds + 300


def test_it_has_the_resources_of_the_operator(render: Render) -> None:
    # As under a quota that asks each pod for a limit of its CPU.
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    rendered = render("lakestream", {"operator": {"resources": resources}, "sparkOperator": {"enabled": False}})
    assert [each["resources"] for _, pod in pods(rendered) for each in containers(pod)] == [resources] * 3
