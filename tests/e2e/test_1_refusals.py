"""The cluster refuses what the operator asks for: it says so in the cluster's words, and goes on once it may."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from cluster.commands import CommandError, Kubectl, Object
from cluster.installation import OTHER
from cluster.stream import Stream
from cluster.waiting import eventually
from lakestream_api import ConditionType

pytestmark = pytest.mark.timeout(1200)

RETRIES = 240.0
"""Seconds: the operator tries again a minute apart at most."""

POLICY_SAYS = "no Spark before the budget is agreed"
QUOTA_SAYS = "exceeded quota: no-applications"
POLICY: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "e2e-no-spark"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["sparkoperator.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["sparkapplications"],
                }
            ]
        },
        "validations": [{"expression": "false", "message": POLICY_SAYS}],
    },
}
BINDING: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "e2e-no-spark"},
    "spec": {
        "policyName": "e2e-no-spark",
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": OTHER}}},
    },
}
QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-applications"},
    "spec": {"hard": {"count/sparkapplications.sparkoperator.k8s.io": "0"}},
}


APPLICATION = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: asked-for-only}
spec:
  {type: Python, mode: cluster, sparkVersion: 3.5.9, mainApplicationFile: "local:///none.py", driver: {}, executor: {}}
"""


def wait_until_refused(kubectl: Kubectl, sentence: str) -> None:
    """The API server takes a moment until it goes by a new policy, or a new quota."""

    def asked() -> str:
        try:
            return kubectl.run("create", "--dry-run=server", "-f", "-", stdin=APPLICATION)
        except CommandError as error:
            return str(error)

    eventually(f"{sentence!r} is in force", lambda: sentence in asked(), RETRIES, asked)


@pytest.fixture
def stream(example: Object) -> Iterator[Stream]:
    """A LakeStream that is refused what it needs; of Kinesis and S3 it sees nothing."""
    kubectl = Kubectl(OTHER)
    document = copy.deepcopy(example)
    document["metadata"] = {"name": "refused"}
    document["spec"]["writers"] = [{"name": "json", "json": {"path": "s3a://lake/refused"}}]
    document["spec"]["checkpoint"] = "s3a://lake/_checkpoints/refused"
    with kubectl.applied(document):
        yield Stream(kubectl, "refused")


def require_refused(stream: Stream, sentence: str) -> None:
    condition = eventually(
        f"{sentence!r} is said",
        lambda: found if (found := stream.condition(ConditionType.DEGRADED)) and sentence in found.message else None,
        RETRIES,
        lambda: stream.object.get("status"),
    )
    assert (condition.status, condition.reason) == ("True", "ApiRefused")
    ready = stream.condition(ConditionType.READY)
    assert ready is not None
    assert ready.status == "False"
    events = stream.kubectl.run("get", "events", "--field-selector", f"involvedObject.name={stream.name}")
    assert events.count(sentence) == 1, "it is not told once"


def require_applied(stream: Stream) -> None:
    eventually(
        "it has its SparkApplication",
        lambda: stream.application("json") is not None,
        RETRIES,
        lambda: stream.object.get("status"),
    )


def test_an_admission_policy_that_refuses_is_quoted_until_it_lets_it_be(request: pytest.FixtureRequest) -> None:
    kubectl = Kubectl(OTHER)
    with kubectl.applied(POLICY):
        with kubectl.applied(BINDING):
            wait_until_refused(kubectl, POLICY_SAYS)
            stream: Stream = request.getfixturevalue("stream")
            require_refused(stream, POLICY_SAYS)
        require_applied(stream)


def test_a_quota_of_objects_is_quoted_until_it_is_raised(request: pytest.FixtureRequest) -> None:
    kubectl = Kubectl(OTHER)
    with kubectl.applied(QUOTA):
        wait_until_refused(kubectl, QUOTA_SAYS)
        stream: Stream = request.getfixturevalue("stream")
        require_refused(stream, QUOTA_SAYS)
    require_applied(stream)
