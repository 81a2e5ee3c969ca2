"""The IAM policies allow the calls that the code makes, and no others."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest

ROOT = Path(__file__).parents[3]
POLICIES = {
    "jobs": ROOT / "charts/lakestream/iam/job.json",
    # Besides, for streams with spec.source.kinesis.shards.
    "reshard": ROOT / "charts/lakestream/iam/reshard.json",
    # Besides, for writers with a consumer of their own.
    "fan-out": ROOT / "charts/lakestream/iam/fan-out.json",
    # A stream's own, for readers of another account.
    "shared": ROOT / "charts/lakestream/iam/shared-stream.json",
    # Besides, for streams with spec.source.kinesis.roleArn.
    "role": ROOT / "charts/lakestream/iam/assume-role.json",
    # Besides, for writers with a catalog.
    "glue": ROOT / "charts/lakestream/iam/glue.json",
    # Besides, for streams with spec.format avro.
    "schemas": ROOT / "charts/lakestream/iam/schema-registry.json",
    "loadgen": ROOT / "charts/loadgen/iam/policy.json",
}
# By the id of a version Glue knows no schema yet of which it could be: AWS's own example for who reads has all.
OF_ALL = {"glue:GetSchemaVersion"}
# Calls of code that runs beside the load, under somebody's own name: `lakestream audit` reads.
ELSEWHERE = {"loadgen": {"get", "head"}}
OBSTORE = {
    # The load puts objects in one request, whatever their size; an upload in parts that failed would be aborted.
    "put": {"s3:PutObject"},
    "get": {"s3:GetObject"},
    "get_range": {"s3:GetObject"},
    "head": {"s3:GetObject"},
    "list": {"s3:ListBucket"},
    "list_with_delimiter": {"s3:ListBucket"},
    "delete": {"s3:DeleteObject"},
    # In a folder alone: S3 has an object whole or not at all.
    "rename": set(),
}
# What Hudi does with tables through S3A: reads, listings, uploads in parts, renames (a copy and a deletion).
# The region is set, so that S3A need not ask for it (s3:GetBucketLocation).
S3A = {"s3:GetObject", "s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"}
# At its start a driver aborts uploads that one before it has left.
S3A |= {"s3:ListBucketMultipartUploads"}


def _actions(policy: Path) -> list[str]:
    found: list[str] = []
    for statement in json.loads(policy.read_text("utf-8"))["Statement"]:
        assert statement["Effect"] == "Allow"
        action = statement["Action"]
        found += [action] if isinstance(action, str) else action
    return found


def _modules(package: str) -> Iterator[ast.Module]:
    for path in (ROOT / package).rglob("*.py"):
        if "testing" not in path.parts:
            yield ast.parse(path.read_text("utf-8"))


def _calls(package: str, service: str) -> set[str]:
    """Operations of a service that a package names in a string of its own."""
    operations = botocore.session.get_session().get_service_model(service).operation_names
    return {
        f"{service}:{operation}"
        for module in _modules(package)
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for operation in operations
        if node.value.rpartition(".")[2] == operation
    }


def _obstore_calls(package: str) -> set[str]:
    return {
        node.func.attr
        for module in _modules(package)
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "obstore"
    }


def test_the_jobs_policy_is_what_the_jobs_call() -> None:
    calls = _calls("jobs", "kinesis")
    assert "kinesis:GetRecords" in calls
    stored = set().union(*(OBSTORE[call] for call in _obstore_calls("jobs")))
    assert "s3:PutObject" in stored
    reshard = _actions(POLICIES["reshard"])
    assert reshard == ["kinesis:UpdateShardCount"]
    pushed = _actions(POLICIES["fan-out"])
    assert pushed == ["kinesis:DescribeStreamConsumer", "kinesis:SubscribeToShard"]
    assert sorted(_actions(POLICIES["jobs"]) + reshard + pushed) == sorted(calls | stored | S3A)


def test_who_reads_anothers_stream_is_let_do_what_readers_of_their_own_are() -> None:
    reading = [action for action in _actions(POLICIES["jobs"]) if action.startswith("kinesis:")]
    assert _actions(POLICIES["shared"]) == reading


def test_who_reads_as_another_role_may_become_that() -> None:
    # Sessions of EKS's Pod Identity have tags, which go with them to the next role.
    assert _actions(POLICIES["role"]) == ["sts:AssumeRole", "sts:TagSession"]


def test_the_policy_of_catalogs_is_what_they_are_asked() -> None:
    assert sorted(_actions(POLICIES["glue"])) == sorted(_calls("jobs/lakestream/catalogs", "glue"))


def test_the_policy_of_schemas_is_what_their_registry_is_asked() -> None:
    assert _actions(POLICIES["schemas"]) == sorted(_calls("jobs/lakestream/avro", "glue"))


def test_the_loadgen_policy_is_what_the_workers_call() -> None:
    calls = _calls("loadgen", "kinesis")
    assert calls == {"kinesis:PutRecords"}
    stored = set().union(*(OBSTORE[call] for call in _obstore_calls("loadgen") - ELSEWHERE["loadgen"]))
    assert sorted(_actions(POLICIES["loadgen"])) == sorted(calls | stored)


def test_the_operator_calls_nothing_in_aws() -> None:
    assert _calls("operator", "kinesis") == set()
    assert _obstore_calls("operator") == set()
    assert {path.name for path in (ROOT / "charts").glob("*/iam/*.json")} == {path.name for path in POLICIES.values()}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_policies_name_their_resources(policy: Path) -> None:
    for statement in json.loads(policy.read_text("utf-8"))["Statement"]:
        resources = statement["Resource"]
        for resource in [resources] if isinstance(resources, str) else resources:
            assert resource.startswith("arn:PARTITION:") or statement["Action"] in OF_ALL
        assert statement["Action"] != "*"


def test_the_guide_fills_in_all_that_policies_leave_open() -> None:
    guide = (ROOT / "docs/eks.md").read_text("utf-8")
    filled = {*re.findall(r"s/([A-Z_]+)/", guide)}
    left = {
        name for policy in POLICIES.values() for name in re.findall(r"\b[A-Z][A-Z_]{3,}\b", policy.read_text("utf-8"))
    }
    assert left == {"PARTITION", "REGION", "ACCOUNT", "STREAM", "BUCKET", "LEDGER_PREFIX", "DATABASE", "READER", "ROLE"}
    assert left <= filled
