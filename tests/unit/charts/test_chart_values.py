"""Values of the charts: each is documented and in the schema, and the schema lets nothing else in."""

import copy
import hashlib
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from lakestream_api.source import _REGION
from lakestream_localkinesis.core.stream import DEFAULT_RETENTION_HOURS

CHARTS = Path(__file__).parents[3] / "charts"
# Memory of the local Kinesis for an order of the load, measured by hand.
RECORD_BYTES = 766
REFERENCE = runpy.run_path(str(CHARTS / "reference.py"))
NAMES: list[str] = REFERENCE["NAMES"]
# May be missing, though not empty by default: a label, which is anybody's choice, and what a template asks for.
OF_HELM = {"global", "enabled"}
"""Values that a chart has which has this one as a dependency: Helm hands them down."""
MISSING = {"grafanaDashboard.labels.grafana_dashboard", "s3.image.tag"}


def _schema(chart: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CHARTS / chart / "values.schema.json").read_text("utf-8"))
    return schema


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: dict[str, Any] = root["definitions"][reference.removeprefix("#/definitions/")]
    return found


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas of objects, wherever they are."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)


def test_there_are_three_charts() -> None:
    assert NAMES == ["lakestream", "loadgen", "local-aws"]


@pytest.mark.parametrize("chart", NAMES)
def test_every_value_has_a_comment(chart: str) -> None:
    values = REFERENCE["values_of"](chart)
    assert len(values) > 15
    assert [value.path for value in values if not value.text] == []


@pytest.mark.parametrize("chart", NAMES)
def test_the_readme_has_all_values_as_they_are(chart: str) -> None:
    written = (CHARTS / chart / "README.md").read_text("utf-8")
    assert "| value | default | |" in written
    assert written == REFERENCE["current"](chart), "run: python charts/reference.py"


@pytest.mark.parametrize("chart", NAMES)
def test_the_schema_says_what_each_object_may_hold(chart: str) -> None:
    schema = _schema(chart)
    assert schema["additionalProperties"] is False
    assert [found for found in _objects(schema) if "additionalProperties" not in found] == []
    # What is not closed is a mapping with keys of the user's choice: it has no names of its own ...
    opened = [
        found for found in _objects(schema) if found["additionalProperties"] is not False and "properties" in found
    ]
    # ... but for the values of a chart that is not ours.
    theirs = schema["properties"].get("sparkOperator")
    assert opened == ([theirs, theirs["properties"]["spark"]] if theirs else [])


@pytest.mark.parametrize("chart", NAMES)
def test_schema_and_values_have_the_same_keys(chart: str) -> None:
    root = _schema(chart)
    different: dict[str, set[str]] = {}

    def compare(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        # What is Kubernetes's own (resources, affinity, ...) is one value, and may leave things out.
        if schema["additionalProperties"] is not False or path in opaque:
            return
        known = set(schema["properties"]) - (OF_HELM if not path else set())
        if known != set(values):
            different[path] = known ^ set(values)
        for key, value in values.items():
            if isinstance(value, dict) and key in schema["properties"]:
                compare(value, _resolved(schema["properties"][key], root), f"{path}.{key}" if path else key)

    opaque = {value.path for value in REFERENCE["values_of"](chart)}
    compare(yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8")), root, "")
    assert different == {}


def _taken(chart: str, path: str, change: Any) -> bool:
    """Whether the schema takes the defaults with another value at a place; mappings are merged."""
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    *outer, name = path.split(".")
    at = values
    for key in outer:
        at = at[key]
    at[name] = {**at[name], **change} if isinstance(change, dict) else change
    return bool(Draft7Validator(_schema(chart)).is_valid(values))


@pytest.mark.parametrize("chart", NAMES)
def test_a_chart_can_be_a_dependency_with_a_condition(chart: str) -> None:
    """By `condition: CHART.enabled` Helm leaves it out of the other chart. On its own it cannot be left out."""
    assert _taken(chart, "enabled", True)
    assert not _taken(chart, "enabled", False)


def _without(values: dict[str, Any], path: str) -> dict[str, Any]:
    left = copy.deepcopy(values)
    *outer, name = path.split(".")
    at = left
    for key in outer:
        at = at[key]
    del at[name]
    return left


@pytest.mark.parametrize("chart", NAMES)
def test_what_is_not_empty_by_default_may_not_be_missing(chart: str) -> None:
    """As where it is null, or where `helm upgrade --reuse-values` goes on with the values of a chart that had none."""
    validator = Draft7Validator(_schema(chart))
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))
    assert validator.is_valid(values)
    paths = [
        value.path
        for value in REFERENCE["values_of"](chart)
        # Those of the Spark Operator have defaults of its own.
        if not value.path.startswith("sparkOperator.") or value.path == "sparkOperator.enabled"
        if value.default is not False and value.default not in ("", [], {})
    ]
    paths += [
        f"{path}.{name}"
        for path in paths
        if "podSecurityContext" in path
        for name in ("runAsNonRoot", "seccompProfile")
    ]
    assert len(paths) > 15
    assert {path for path in paths if validator.is_valid(_without(values, path))} <= MISSING


def test_all_that_is_retained_of_the_local_load_fits_into_the_local_kinesis() -> None:
    """With or without a runTime, which begins anew with each start of the master."""
    load = yaml.safe_load((CHARTS / "loadgen/ci/local-aws.yaml").read_text("utf-8"))["load"]
    kinesis = yaml.safe_load((CHARTS / "local-aws/values.yaml").read_text("utf-8"))["kinesis"]
    limit = kinesis["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    retained = load["events"] * DEFAULT_RETENTION_HOURS * 3600 * RECORD_BYTES
    # Up to an eighth of what is there may be past its retention already.
    assert retained * 8 / 7 < int(limit.removesuffix("Gi")) * 2**30


def test_the_lock_of_dependencies_is_in_line_with_them() -> None:
    chart = yaml.safe_load((CHARTS / "lakestream" / "Chart.yaml").read_text("utf-8"))
    lock = yaml.safe_load((CHARTS / "lakestream" / "Chart.lock").read_text("utf-8"))
    # As Helm makes the digest: of both lists as JSON, in the order of its structure's fields.
    fields = ("name", "version", "repository", "condition", "alias")
    wanted = [{field: each[field] for field in fields if field in each} for each in chart["dependencies"]]
    locked = [{field: each[field] for field in fields if field in each} for each in lock["dependencies"]]
    text = json.dumps([wanted, locked], separators=(",", ":"))
    assert lock["digest"] == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert [each["version"] for each in locked] == [each["version"] for each in wanted]


@pytest.mark.parametrize("chart", NAMES)
def test_intervals_of_scrapes_are_those_of_the_prometheus_operator(chart: str) -> None:
    schema, values = _schema(chart), yaml.safe_load((CHARTS / chart / "values.yaml").read_text("utf-8"))

    def takes(interval: str) -> bool:
        return bool(Draft7Validator(schema).is_valid({**values, "podMonitor": {"interval": interval}}))

    assert [text for text in ("30s", "1m", "1m30s", "1h20m15s", "500ms") if not takes(text)] == []
    assert [text for text in ("0.5m", "1.5s", "30", "", "s", "30s1m", "1 m") if takes(text)] == []


@pytest.mark.parametrize(
    "region", ["eu-west-1", "us-gov-west-1", "eusc-de-east-1", "europe", "eu-west", "e-west-1", "EU-west-1"]
)
def test_regions_are_those_of_the_resource(region: str) -> None:
    taken = _REGION.fullmatch(region) is not None
    assert (_taken("loadgen", "aws.region", region), _taken("local-aws", "region", region)) == (taken, taken)


@pytest.mark.parametrize("chart", NAMES)
def test_pods_may_have_profiles_of_selinux_and_apparmor(chart: str) -> None:
    path = "operator.podSecurityContext" if chart == "lakestream" else "podSecurityContext"
    good = {
        "seLinuxOptions": {"type": "container_t", "level": "s0:c1,c2"},
        "appArmorProfile": {"type": "RuntimeDefault"},
    }
    assert _taken(chart, path, good)
    bad: list[Any] = [
        {"appArmorProfile": {"type": "Unconfined"}},
        {"appArmorProfile": {}},
        {"seLinuxOptions": {"kind": "x"}},
    ]
    assert [change for change in bad if _taken(chart, path, change)] == []


@pytest.mark.parametrize(
    ("chart", "path"),
    [("lakestream", "metricsFrom"), ("loadgen", "webFrom"), ("loadgen", "egress"), ("local-aws", "from")],
)
def test_a_peer_that_says_nothing_is_refused(chart: str, path: str) -> None:
    """As the API server does."""
    peers: list[dict[str, Any]] = [{"namespaceSelector": {}}]
    assert _taken(chart, f"networkPolicy.{path}", [{"to": peers}] if path == "egress" else peers)
    peers.append({})
    assert not _taken(chart, f"networkPolicy.{path}", [{"to": peers}] if path == "egress" else peers)


@pytest.mark.parametrize(
    ("chart", "path"),
    [
        ("lakestream", "operator"),
        ("lakestream", "job"),
        ("loadgen", "image"),
        ("local-aws", "kinesis"),
        ("local-aws", "s3"),
    ],
)
def test_images_are_named_without_blanks(chart: str, path: str) -> None:
    place = path if path == "image" else f"{path}.image"
    assert _taken(chart, place, {"repository": "registry.example.com/lakestream", "tag": "1"})
    for change in ({"repository": ""}, {"repository": "lakestream/a "}, {"tag": "1 2"}):
        assert not _taken(chart, place, change), change
