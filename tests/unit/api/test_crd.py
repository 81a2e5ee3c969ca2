"""The CustomResourceDefinition: what the models say, in a form that an API server takes.

Its rules in CEL can be tried on an API server only. Their cases are in tests/e2e/invalid; here they are held against
what the models say to the same documents.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator

from lakestream_api import InvalidDocumentError, load_lakestream, load_lakestream_object
from lakestream_api.cel import RULES
from lakestream_api.crd import crd, crd_yaml, openapi_schema

ROOT = Path(__file__).parents[3]
SCHEMA = openapi_schema()
INVALID = ROOT / "tests" / "e2e" / "invalid"
ORDERS = (INVALID / "orders.yaml").read_text("utf-8")
VALID = [*sorted((ROOT / "examples").glob("*.yaml")), Path(__file__).with_name("full.yaml"), INVALID / "orders.yaml"]
CREATED: list[dict[str, Any]] = yaml.safe_load((INVALID / "created.yaml").read_text("utf-8"))
CHANGED: list[dict[str, Any]] = yaml.safe_load((INVALID / "changed.yaml").read_text("utf-8"))
# Pods share no disk, so what is right on a laptop is wrong there.
LOCAL_FOLDER = "pods share no disk"


def _nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from _nodes(field, f"{path}.{name}")
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in schema:
            yield from _nodes(schema[keyword], f"{path}{step}")


NODES = dict(_nodes(SCHEMA))
MESSAGES = [rule["message"] for node in NODES.values() for rule in node.get(RULES, [])]


def _defaulted(value: Any, schema: Mapping[str, Any]) -> Any:
    """What an API server makes of a value: defaults first, then those of what is in it."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        given = {name: field["default"] for name, field in fields.items() if "default" in field and name not in value}
        return {name: _defaulted(below, fields.get(name, {})) for name, below in {**value, **given}.items()}
    if isinstance(value, list):
        return [_defaulted(below, schema.get("items", {})) for below in value]
    return value


def _problems(document: Mapping[str, Any]) -> list[str]:
    return [error.json_path for error in Draft4Validator(SCHEMA).iter_errors(document)]


def _documents(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["by"].strip()) for case in cases]


def test_the_chart_has_what_the_models_say() -> None:
    written = (ROOT / "charts" / "lakestream" / "files" / "lakestreams.yaml").read_text("utf-8")
    assert written == crd_yaml(), "the CRD in the chart is not what the models say; run: make docs"
    assert yaml.safe_load(written) == crd()


def test_the_schema_is_structural() -> None:
    allowed = {
        *("anyOf", "default", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "items", "maximum"),
        *("maxItems", "maxLength", "maxProperties", "minimum", "minItems", "minLength", "pattern", "properties"),
        *("additionalProperties", "format", "required", "type", "x-kubernetes-int-or-string", RULES),
        *("x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields"),
    }
    assert len(NODES) > 120
    assert {path for path, node in NODES.items() if not {"type", "x-kubernetes-int-or-string"} & set(node)} == set()
    assert {keyword for node in NODES.values() for keyword in node} <= allowed


def test_every_field_can_be_explained() -> None:
    fields = [path for path in NODES if path and not path.endswith(("[]", "{}")) and path != ".metadata"]
    assert [path for path in fields if not NODES[path].get("description")] == []


def test_every_rule_says_what_to_do_and_where() -> None:
    assert len(MESSAGES) > 60
    for path, node in NODES.items():
        for rule in node.get(RULES, []):
            assert set(rule) <= {"rule", "message", "fieldPath"}
            assert "\n" not in rule["message"]
            if "fieldPath" in rule:
                assert path + rule["fieldPath"] in NODES


def test_backslashes_of_rules_are_in_raw_texts() -> None:
    """In others CEL takes them for escapes, and an API server refuses the whole CRD for one that it does not know."""
    for path, node in NODES.items():
        for rule in node.get(RULES, []):
            for prefix, text in re.findall(r"(\w?)'([^']*)'", rule["rule"]):
                assert prefix == "r" or "\\" not in text, (path, text)


def test_texts_and_lists_under_rules_have_a_greatest_size() -> None:
    limits = {"string": "maxLength", "array": "maxItems"}
    for path, node in NODES.items():
        if path.startswith(".spec") and node.get(RULES) and node.get("type") in limits and "enum" not in node:
            assert limits[node["type"]] in node, path


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_what_is_valid_fits_the_schema_and_stays_what_it_was(path: Path) -> None:
    read = load_lakestream(path.read_text("utf-8"))
    document = json.loads(read.model_dump_json(exclude_unset=True))
    assert _problems(document) == []
    served = _defaulted(document, SCHEMA)
    assert _problems(served) == []
    assert load_lakestream_object(served) == read


def test_the_full_document_has_every_field() -> None:
    text = Path(__file__).with_name("full.yaml").read_text("utf-8")
    read, said = load_lakestream(text), set()
    models: list[tuple[Any, str]] = [(read.spec, ".spec")]
    while models:
        model, path = models.pop()
        if isinstance(model, tuple):
            models += [(entry, f"{path}[]") for entry in model]
        elif hasattr(model, "model_fields_set"):
            fields = {name: str(type(model).model_fields[name].validation_alias) for name in model.model_fields_set}
            said |= {f"{path}.{alias}" for alias in fields.values()}
            models += [(getattr(model, name), f"{path}.{alias}") for name, alias in fields.items()]
    fields = {path for path in NODES if path.startswith(".spec.") and not path.endswith(("[]", "{}"))}
    # Of two, only one can be given: annotations of an account or its name, shards or an account of the stream.
    assert fields - said == {".spec.kubernetes.serviceAccount", ".spec.source.kinesis.account"}


def test_the_defaults_are_those_of_the_models() -> None:
    served = _defaulted(yaml.safe_load(ORDERS), SCHEMA)
    spec, said = served["spec"], json.loads(load_lakestream(ORDERS).model_dump_json())["spec"]
    assert spec["trigger"] == {**said["trigger"], "maxBytesPerBatch": 256 << 20}
    assert spec["resources"] == said["resources"]
    assert spec["scaling"] == {k: v for k, v in said["scaling"].items() if v not in (None, [])}
    index = said["writers"][0]["hudi"]["index"]
    assert spec["writers"][0]["hudi"]["index"] == {k: v for k, v in index.items() if v is not None}
    assert spec["writers"][1]["json"]["compression"] == "gzip"
    assert "kubernetes" not in spec


@pytest.mark.parametrize(
    ("replace", "by", "where"),
    [
        ("stream: orders\n", "stream: 42\n", "$.spec.source.kinesis.stream"),
        ("      region: eu-west-1\n", "", "$.spec.source.kinesis"),
        ("region: eu-west-1", "region: eu-west-1\n      onDataLoss: ignore", "$.spec.source.kinesis.onDataLoss"),
        ("region: eu-west-1", "region: eu-west-1\n      shards: {min: 0, max: 1}", "$.spec.source.kinesis.shards.min"),
        ("  writers:", "  trigger: {interval: 10}\n  writers:", "$.spec.trigger.interval"),
        ("  writers:", "  trigger: {maxRecordsPerBatch: 0}\n  writers:", "$.spec.trigger.maxRecordsPerBatch"),
        ("  writers:", "  trigger: {maxBytesPerBatch: true}\n  writers:", "$.spec.trigger.maxBytesPerBatch"),
        ("  writers:", "  quarantine: {maxFraction: 1.5}\n  writers:", "$.spec.quarantine.maxFraction"),
        ("  writers:", "  scaling: {targetUtilization: 0}\n  writers:", "$.spec.scaling.targetUtilization"),
        ("  writers:", "  scaling: {targetUtilization: 1.0}\n  writers:", "$.spec.scaling.targetUtilization"),
        ("  writers:", "  scaling: {maxExecutors: 10001}\n  writers:", "$.spec.scaling.maxExecutors"),
        ("  writers:", "  resources: {driver: {cores: 0}}\n  writers:", "$.spec.resources.driver.cores"),
        ("  writers:", "  suspend: 1\n  writers:", "$.spec.suspend"),
        ("recordKey: [order_id]", "recordKey: []", "$.spec.writers[0].hudi.recordKey"),
        ("recordKey: [order_id]", "recordKey: order_id", "$.spec.writers[0].hudi.recordKey"),
        ("recordKey: [order_id]", "recordKey: [order_id]\n        tableType: mor", "$.spec.writers[0].hudi.tableType"),
        ("recordKey: [order_id]", "recordKey: [a]\n        options: {a: 1}", "$.spec.writers[0].hudi.options.a"),
        ("name: json", "tag: json", "$.spec.writers[1]"),
        ("  checkpoint: s3a://lake/_checkpoints/orders\n", "", "$.spec"),
    ],
)
def test_what_needs_no_rule_the_schema_itself_refuses(replace: str, by: str, where: str) -> None:
    assert replace in ORDERS
    assert where in _problems(yaml.safe_load(ORDERS.replace(replace, by, 1)))


@pytest.mark.parametrize("case", _documents([case for case in CREATED if LOCAL_FOLDER not in str(case["says"])]))
def test_what_an_api_server_refuses_is_refused_on_a_laptop_too(case: dict[str, Any]) -> None:
    text = ORDERS.replace(case["replace"], case["by"], 1)
    assert text != ORDERS
    with pytest.raises(InvalidDocumentError):
        load_lakestream(text)


@pytest.mark.parametrize("case", _documents(CHANGED))
def test_what_cannot_be_changed_is_valid_by_itself(case: dict[str, Any]) -> None:
    text = ORDERS.replace(case["replace"], case["by"], 1)
    assert text != ORDERS
    assert load_lakestream(text).spec != load_lakestream(ORDERS).spec


def test_there_is_a_case_for_every_rule() -> None:
    said = [fragment for case in [*CREATED, *CHANGED] for fragment in case["says"]]
    assert [message for message in MESSAGES if not any(fragment in message for fragment in said)] == []


def test_a_schema_is_made_anew_each_time() -> None:
    before = copy.deepcopy(crd())
    crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()
    assert crd() == before
