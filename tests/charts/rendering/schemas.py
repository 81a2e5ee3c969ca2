"""JSON schemas for kubeconform, made from what a cluster publishes of its API, and from CRDs.

Closed to unknown fields, which the API server drops in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
LOCATION = "{{.Group}}-{{.ResourceAPIVersion}}-{{.ResourceKind}}.json"
_PREFIX = "#/definitions/"


def write_api_schemas(openapi: Schema, kinds: set[tuple[str, str]], folder: Path) -> None:
    """A file for each `(apiVersion, kind)`, from the API server's OpenAPI v2 document."""
    definitions: dict[str, Schema] = {
        # The document knows them as strings; the API server takes numbers too.
        name: {"type": ["string", "number"]} if name.endswith((".Quantity", ".IntOrString")) else _closed(schema)
        for name, schema in openapi["definitions"].items()
    }
    for name, schema in definitions.items():
        for found in schema.get("x-kubernetes-group-version-kind", []):
            version = "/".join(filter(None, (found["group"], found["version"])))
            if (version, found["kind"]) in kinds:
                needed = {each: definitions[each] for each in _reachable(name, definitions)}
                _write(folder, version, found["kind"], {"$ref": f"{_PREFIX}{name}", "definitions": needed})


def write_crd_schemas(crd: Schema, folder: Path) -> None:
    """A file for each version of a CRD."""
    spec = crd["spec"]
    for version in spec["versions"]:
        schema = _closed(version["schema"]["openAPIV3Schema"])
        text = {"type": "string"}
        schema["properties"] |= {"apiVersion": text, "kind": text, "metadata": {"type": "object"}}
        _write(folder, f"{spec['group']}/{version['name']}", spec["names"]["kind"], schema)


def _write(folder: Path, version: str, kind: str, schema: Schema) -> None:
    parts = version.split("/")
    (folder / f"{parts[0]}-{parts[-1]}-{kind.lower()}.json").write_text(json.dumps(schema), "utf-8")


def _reachable(name: str, definitions: dict[str, Schema]) -> set[str]:
    found: set[str] = set()
    open_names = {name}
    while open_names:
        current = open_names.pop()
        found.add(current)
        open_names |= set(_references(definitions[current])) - found
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _references(each)
    elif isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_PREFIX)
        for each in schema.values():
            yield from _references(each)


def _closed(schema: Schema) -> Schema:
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(each) for name, each in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            closed[key] = _closed(schema[key])
    if schema.get("x-kubernetes-int-or-string"):
        closed["type"] = ["string", "integer"]
    return closed
