"""The CustomResourceDefinition, written from the models: `python -m lakestream_api.crd`.

There is no scale subresource. Its one number would be `spec.scaling.executors`, which counts for each writer, beside
the executors of all writers; it would read 0, "switched off", as long as executors follow the lag; and once written by
`kubectl scale` or by a HorizontalPodAutoscaler it could not be taken away again, so that the lag would never more be
followed. `kubectl patch` of the field itself says what it does.
"""

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import yaml
from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from lakestream_api.cel import RULES
from lakestream_api.names import GROUP, KIND, PLURAL, VERSION
from lakestream_api.quantities import format_duration
from lakestream_api.resource import LakeStream
from lakestream_api.status import LakeStreamStatus, Phase

_HEADER = "# Written from the models in api/ by `make docs`; changes here are lost.\n"
_READY = '.status.conditions[?(@.type=="Ready")]'
_KEPT = (
    "x-kubernetes-preserve-unknown-fields",
    "default",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "pattern",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
)
"""Keywords that mean the same in JSON Schema and in a CRD."""


def crd() -> dict[str, Any]:
    """The CustomResourceDefinition as a mapping, fit to be written as YAML."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}", "labels": {"app.kubernetes.io/name": "lakestream"}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["lks"],
                "categories": ["all", "lakestream"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(),
                    "schema": {"openAPIV3Schema": openapi_schema()},
                }
            ],
        },
    }


def _columns() -> list[dict[str, Any]]:
    """What `kubectl get lakestreams` shows; a priority above 0 is shown with `-o wide` only."""
    return [
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {
            "name": "Lag",
            "type": "string",
            "jsonPath": ".status.lag",
            "description": "Age of the oldest record that is not in the table, of the slowest writer",
        },
        {
            "name": "Records/s",
            "type": "integer",
            "jsonPath": ".status.recordsPerSecond",
            "description": "Records read per second, all writers together",
        },
        {"name": "Executors", "type": "integer", "jsonPath": ".status.executors.now"},
        {"name": "Target", "type": "integer", "jsonPath": ".status.executors.target"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Ready", "type": "string", "priority": 1, "jsonPath": f"{_READY}.status"},
        {
            "name": "Quarantined",
            "type": "string",
            "priority": 1,
            "jsonPath": ".status.quarantined",
            "description": "Share of the last records that are in quarantine",
        },
        {"name": "Stream", "type": "string", "priority": 1, "jsonPath": ".spec.source.kinesis.stream"},
        {"name": "Message", "type": "string", "priority": 1, "jsonPath": f"{_READY}.message"},
    ]


def openapi_schema() -> dict[str, Any]:
    """The structural schema of a LakeStream with its status."""
    schema = _structural(LakeStream)
    fields = schema["properties"]
    # The API server checks these three itself; of the metadata, a schema may say no more.
    fields["apiVersion"] = {"type": "string", "description": fields["apiVersion"]["description"]}
    fields["kind"] = {"type": "string", "description": fields["kind"]["description"]}
    fields["metadata"] = {"type": "object"}
    fields["status"] = _without_defaults(_structural(LakeStreamStatus)) | {"default": _unseen()}
    schema["required"] = ["spec"]
    return schema


def _unseen() -> dict[str, Any]:
    """The status of a LakeStream that no operator has seen yet. Who goes by kstatus, as Flux and Helm do, takes one
    without any for one that is as it should be."""
    status = LakeStreamStatus(observed_generation=-1, phase=Phase.PENDING)
    return status.model_dump(mode="json", by_alias=True, exclude_unset=True)


class _Schemas(GenerateJsonSchema):
    """JSON schemas whose defaults are as a person would write them."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def _structural(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_Schemas)
    return _convert(schema, schema.get("$defs", {}))


def _convert(schema: JsonSchemaValue, definitions: Mapping[str, JsonSchemaValue]) -> dict[str, Any]:
    """A JSON schema in the dialect of CRDs: no references, no null, no tuples, OpenAPI's bounds."""
    schema = _resolved(schema, definitions)
    made: dict[str, Any] = {}
    if "description" in schema:
        made["description"] = " ".join(str(schema["description"]).split())
    made |= {keyword: schema[keyword] for keyword in _KEPT if keyword in schema} | _bounds(schema)
    if "x-kubernetes-int-or-string" in schema:
        made["anyOf"] = schema["anyOf"]
    for keyword in ("additionalProperties", "items"):
        if schema.get(keyword):
            made[keyword] = _convert(schema[keyword], definitions)
    if "properties" in schema:
        made["properties"] = {name: _convert(field, definitions) for name, field in schema["properties"].items()}
    made |= {keyword: schema[keyword] for keyword in ("required", RULES) if keyword in schema}
    return _with_fitting_default(made)


def _bounds(schema: JsonSchemaValue) -> dict[str, Any]:
    """Bounds of a number; one that is exclusive is said by a flag."""
    made: dict[str, Any] = {}
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if bound in schema:
            made[bound] = schema[bound]
        elif exclusive in schema:
            made |= {bound: schema[exclusive], exclusive: True}
    return made


def _resolved(schema: JsonSchemaValue, definitions: Mapping[str, JsonSchemaValue]) -> dict[str, Any]:
    """The schema with what it refers to, or with the one alternative to null, put in its place."""
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if "$ref" in schema:
        below = definitions[str(schema["$ref"]).rsplit("/", 1)[-1]]
    elif "anyOf" in schema and len(options) == 1:
        (below,) = options
    else:
        return dict(schema)
    inner = _resolved(below, definitions)
    outer = {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "anyOf")}
    rules = [*inner.get(RULES, []), *outer.get(RULES, [])]
    return {**inner, **outer, **({RULES: rules} if rules else {})}


def _with_fitting_default(schema: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the defaults that say nothing: what is defaulted is written into every object.

    The default of a mapping is that of its fields, written out: CEL rules are applied to it as it stands.
    """
    default = schema.pop("default", None)
    if default is not None and "properties" in schema:
        fields = schema["properties"].items()
        default = {name: field["default"] for name, field in fields if "default" in field}
    return schema if default in (None, "", [], {}) else {**schema, "default": default}


def _without_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """A status has what the operator wrote, and nothing besides."""
    schema.pop("default", None)
    for below in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        _without_defaults(below)
    return schema


def crd_yaml() -> str:
    """The CustomResourceDefinition as it is in the chart."""
    return _HEADER + yaml.dump(crd(), sort_keys=False, width=120, allow_unicode=True, Dumper=_Dumper)


class _Dumper(yaml.SafeDumper):
    """YAML without anchors: the same rules in two places are written twice."""

    def ignore_aliases(self, data: JsonValue) -> bool:
        return True


if __name__ == "__main__":
    sys.stdout.write(crd_yaml())
