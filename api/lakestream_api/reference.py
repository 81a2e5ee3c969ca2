"""The configuration reference, written from the models: `python -m lakestream_api.reference`."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from lakestream_api.quantities import Cpu, Heap, Memory, Size, format_duration, format_size
from lakestream_api.resource import LakeStream
from lakestream_api.status import LakeStreamStatus

_INTRODUCTION = """\
# Configuration

<!-- Written from the models in api/ by `make docs`; changes here are lost. -->

One document describes a stream and the tables that it keeps fresh. A job is given the very document that
Kubernetes is given; [examples/laptop.yaml](../examples/laptop.yaml) is one for a laptop,
[examples/lakestream.yaml](../examples/lakestream.yaml) one for a cluster, and `lakestream validate -f FILE` checks one
and names each problem by its path.

On Kubernetes the CustomResourceDefinition says the same: `kubectl explain lakestream.spec.writers` shows a section of
this page, and the API server refuses what is not valid. Folders must be on S3 there, since pods share no disk.

- A **duration** has hours, minutes, seconds and milliseconds: `500ms`, `10s`, `5m`, `1h30m`.
- A **size** is a number of bytes, or has a unit of `Ki`, `Mi`, `Gi` or `Ti`: `256Mi`.
- **CPU** is cores, or thousandths of a core, in quotes: `"2"`, `"1.5"`, `"500m"`.
- **Memory** is written as the JVM does: `512m`, `2g`.
- A **time** has a time zone: `"2026-01-31T06:00:00Z"`.
"""

_TYPES: dict[Any, str] = {
    bool: "`true` or `false`",
    int: "integer",
    float: "number",
    str: "text",
    timedelta: "duration",
    datetime: "time",
    AwareDatetime: "time",
    dict: "map of text to text",
}
_BOUNDS: dict[type, tuple[str, str]] = {Ge: ("ge", "≥"), Gt: ("gt", ">"), Le: ("le", "≤"), Lt: ("lt", "<")}


_STATUS = """
# Status

What the operator says of a LakeStream on Kubernetes: `kubectl get lks NAME -o yaml` shows all of it, `kubectl get lks`
the most important.
"""


def reference() -> str:
    """The reference of all fields as Markdown: a section and a table for each mapping in the document."""
    document, status = _sections(LakeStream, ""), _sections(LakeStreamStatus, "status")
    return "".join([_INTRODUCTION, *document, _STATUS, *status])


def _sections(model: type[BaseModel], path: str) -> Iterator[str]:
    title = f"`{path}`" if path else "The document"
    yield f"\n## {title}\n\n{_prose(model.__doc__)}\n\n| field | type | default | |\n|---|---|---|---|\n"
    for name, field in _named(model):
        kind = _type(field, _join(path, name, field))
        yield f"| `{name}` | {kind} | {_default(field)} | {_prose(field.description)} |\n"
    for name, field in _named(model):
        below = _model(field)
        if below:
            yield from _sections(below, _join(path, name, field))


def _named(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(str(field.validation_alias), field) for field in model.model_fields.values()]


def _join(path: str, name: str, field: FieldInfo) -> str:
    step = f"{name}[]" if get_origin(_plain(field)) is tuple and _model(field) else name
    return f"{path}.{step}" if path else step


def _plain(field: FieldInfo) -> Any:
    """The field's type without `| None` and what is annotated to it."""
    options = get_args(field.annotation)
    plain = next(option for option in options if option is not NoneType) if NoneType in options else field.annotation
    return get_args(plain)[0] if get_origin(plain) is Annotated else plain


def _model(field: FieldInfo) -> type[BaseModel] | None:
    plain = _plain(field)
    found = get_args(plain)[0] if get_origin(plain) is tuple else plain
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _type(field: FieldInfo, path: str) -> str:
    plain = _plain(field)
    if _model(field):
        anchor = "".join(letter for letter in path.lower() if letter.isalnum())
        return f"[{'list' if get_origin(plain) is tuple else 'mapping'}](#{anchor})"
    if get_origin(plain) is Literal:
        return f"`{get_args(plain)[0]}`"
    if isinstance(plain, type) and issubclass(plain, Enum):
        return ", ".join(f"`{member.value}`" for member in plain)
    if get_origin(plain) is tuple:
        return "list of text"
    if _is(Size, field):
        return "size"
    if _is(Memory, field) or _is(Heap, field):
        return "memory"
    if _is(Cpu, field):
        return "CPU"
    if get_args(plain) == (str, Any):
        return "mapping"
    bounds = [f"{sign} {getattr(rule, name):,}" for rule, name, sign in _bounds(field)]
    return " ".join([_TYPES[get_origin(plain) or plain], ", ".join(bounds)]).strip()


def _bounds(field: FieldInfo) -> list[tuple[Any, str, str]]:
    return [(rule, *_BOUNDS[type(rule)]) for rule in field.metadata if type(rule) in _BOUNDS]


def _is(annotated: Any, field: FieldInfo) -> bool:
    """Whether the field is of an annotated type; its validator tells it from others of the same plain type."""
    inner = [found for option in get_args(field.annotation) for found in getattr(option, "__metadata__", ())]
    return get_args(annotated)[1] in [*field.metadata, *inner]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value == "" or isinstance(value, BaseModel):
        return ""
    return f"`{_written(value, field)}`"


def _written(value: Any, field: FieldInfo) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[]"
    return format_size(value) if _is(Size, field) else str(value)


def _prose(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", r"\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
