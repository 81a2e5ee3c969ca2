"""From YAML text to a LakeStream, with errors that a person can act on."""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from yaml.composer import Composer

from lakestream_api.errors import InvalidDocumentError, Problem
from lakestream_api.names import GROUP
from lakestream_api.resource import LakeStream, Scaling

M = TypeVar("M", bound=BaseModel)


class _Loader(Composer, yaml.CSafeLoader):
    """YAML as JSON has it: times stay text, and a key that is given twice is an error.

    Parsed by libyaml, in a third of the time: the operator reads these, some as long as an object of the API server may
    be. Composed in Python, which notices what is nested too deeply; libyaml's composer would end the process.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, _NO_KEY, key_node.start_mark)
            if key_node.value in seen and key_node.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key_node.value} is given twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)

    def construct_document(self, node: yaml.Node) -> Any:
        sizes: dict[int, int] = {}
        if _size(node, sizes) > _MOST_NODES + len(sizes):
            raise yaml.constructor.ConstructorError(None, None, "its aliases (*…) stand for too much", node.start_mark)
        return super().construct_document(node)


_NO_KEY = "a mapping or list is no name of a field; fill {{ … }} in with what it stands for, or put it in quotes"
"""Mostly it is a place of a template that nobody has filled in."""

_MOST_NODES = 100_000
"""That aliases may stand for: a few lines of them can stand for more than any memory holds."""


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are, those that aliases stand for included; `sizes` has those that are known."""
    if id(node) not in sizes:
        sizes[id(node)] = 1  # where it is below itself; that is told later
        below = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for one in below for part in (one if isinstance(one, tuple) else (one,)))
        sizes[id(node)] += sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_lakestream(text: str) -> LakeStream:
    """Read a LakeStream from a YAML (or JSON) document.

    Raises:
        InvalidDocumentError: with every problem found, each with its path and what to do.
    """
    return _validated(LakeStream, _only(_documents(text)))


def lakestreams_in(text: str) -> list[Mapping[str, Any]]:
    """The LakeStreams among the documents of a YAML text, and in its lists, as `kubectl get -o yaml` prints them.

    So is what is of our API by another kind: it is misspelled, and told so. There is none in a list without items.
    Elsewhere, where there is none, a text with one document is that: it is told what it lacks.

    Raises:
        InvalidDocumentError: it is no YAML, or has no LakeStream, and is no empty list.
    """
    documents = _documents(text)
    items = [one for document in documents for one in _items(document)]
    found = [one for one in items if _kind(one) == LakeStream.__name__ or _is_ours(one)]
    return found if found or (documents and not items) else [_only(documents)]


def load_manifest(manifest: Mapping[str, Any]) -> LakeStream:
    """Read a LakeStream as somebody wrote it, or, if it has a `uid`, as an API server hands it out.

    Raises:
        InvalidDocumentError: as by `load_lakestream` and `load_lakestream_object`.
    """
    metadata = manifest.get("metadata")
    if isinstance(metadata, Mapping) and "uid" in metadata:
        return load_lakestream_object(manifest)
    return _validated(LakeStream, manifest)


# What an API server adds to the fields of `Metadata`.
_SERVER_METADATA = {
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
}


def load_lakestream_object(manifest: Mapping[str, Any]) -> LakeStream:
    """Read a LakeStream as an API server hands it out: its status and what it adds to the metadata are passed over.

    So are fields that are not known: the server itself cuts off those that its definition does not have. That of a
    newer release may have more, whose defaults are in each object, also in those that nobody has written since.

    Raises:
        InvalidDocumentError: as by `load_lakestream`, but for that.
    """
    return _served(LakeStream, _document(manifest))


def unknown_fields(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of those fields that `load_lakestream_object` passes over because they are not known."""
    return tuple(_path(place) for place in _unknown(LakeStream, _document(manifest)))


def _document(manifest: Mapping[str, Any]) -> dict[str, Any]:
    document = {name: value for name, value in manifest.items() if name != "status"}
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        document["metadata"] = {name: value for name, value in metadata.items() if name not in _SERVER_METADATA}
    return document


def load_scaling(manifest: Mapping[str, Any]) -> Scaling:
    """Read `spec.scaling` of a LakeStream as an API server hands it out, whatever the rest of the spec says.

    Raises:
        InvalidDocumentError: it is not there, or invalid itself.
    """
    spec = manifest.get("spec")
    scaling = spec.get("scaling", {}) if isinstance(spec, Mapping) else None
    return _served(Scaling, scaling, ("spec", "scaling"))


def _served(model: type[M], document: object, place: tuple[str, ...] = ()) -> M:
    """As `_validated`, without the fields that are not known."""
    for unknown in _unknown(model, document):
        document = _without(document, unknown)
    return _validated(model, document, place)


def _unknown(model: type[BaseModel], document: object) -> list[tuple[int | str, ...]]:
    """The places of fields that are not known, whatever else is wrong."""
    try:
        _read(model, document)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        return [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    return []


def _without(document: Any, place: Sequence[int | str]) -> Any:
    """The same document, but for what is at a place of it."""
    step, *rest = place
    if not rest:
        return {name: value for name, value in document.items() if name != step}
    if isinstance(document, list):
        return [_without(one, rest) if index == step else one for index, one in enumerate(document)]
    return {name: _without(value, rest) if name == step else value for name, value in document.items()}


_MOST_LEVELS = 200
_TOO_DEEP = f"the document is nested too deeply; write what has at most {_MOST_LEVELS} levels"
_MOST_VALUES = 5_000
"""Of a document. An operator reads those of all namespaces, each once for each writer, and answers nobody meanwhile."""
_TOO_LARGE = f"the document has more than {_MOST_VALUES:,} values, as of a template of a pod; write one with fewer"


def _read(model: type[M], document: object) -> M:
    # Strict, and through JSON: what is valid here is what the CRD's schema would accept too.
    try:
        text = json.dumps(document)
    except RecursionError as error:
        raise InvalidDocumentError([Problem("", _TOO_DEEP)]) from error
    _require_readable(document)
    return model.model_validate_json(text, strict=True, by_alias=True, by_name=False)


def _require_readable(document: object) -> None:
    left, seen = [(document, 1)], 0
    while left:
        value, level = left.pop()
        seen += 1
        if level > _MOST_LEVELS or seen > _MOST_VALUES:
            raise InvalidDocumentError([Problem("", _TOO_LARGE if level <= _MOST_LEVELS else _TOO_DEEP)])
        below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        left += ((one, level + 1) for one in below)


def _validated(model: type[M], document: object, place: tuple[str, ...] = ()) -> M:
    """The part of a LakeStream that is at this place of it."""
    try:
        return _read(model, document)
    except ValidationError as error:
        # A list whose entries are all invalid counts as too short, though it is not empty.
        details = [
            detail for detail in error.errors(include_url=False) if detail["type"] != "too_short" or not detail["input"]
        ]
        raise InvalidDocumentError(
            [_problem({**detail, "loc": (*place, *detail["loc"])}) for detail in details]
        ) from error


def _documents(text: str) -> list[Any]:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
        json.dumps(documents)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = "a tab, which YAML does not indent by; write blanks" if _is_tab(text, mark) else error.problem
        message = f"the document is not valid YAML{where}: {what}"
        raise InvalidDocumentError([Problem("", message)]) from error
    except RecursionError as error:
        raise InvalidDocumentError([Problem("", "the document is not valid YAML: it is nested too deeply")]) from error
    except (AttributeError, LookupError) as error:
        # So PyYAML fails on `!!bool maybe`, `!!int ""` and the like.
        message = "the document is not valid YAML: a value is not what its tag (!!…) says"
        raise InvalidDocumentError([Problem("", message)]) from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        message = f"the document is not valid YAML: {error}"
        raise InvalidDocumentError([Problem("", message)]) from error
    return [document for document in documents if document is not None]


def _is_tab(text: str, mark: yaml.Mark | None) -> bool:
    """Whether that is what is wrong there: libyaml says only that it cannot start any token."""
    return mark is not None and "".join(text.split("\n")[mark.line : mark.line + 1]).startswith("\t", mark.column)


def _items(document: Any) -> Sequence[Any]:
    """Those of a list of the API's, or the document itself."""
    items = document.get("items") if isinstance(document, Mapping) and str(_kind(document)).endswith("List") else None
    return items if isinstance(items, list) else [document]


def _kind(document: Any) -> object:
    return document.get("kind") if isinstance(document, Mapping) else None


def _is_ours(document: Any) -> bool:
    """Whether it is of our API, which has one kind."""
    return isinstance(document, Mapping) and str(document.get("apiVersion")).startswith(f"{GROUP}/")


def _only(documents: Sequence[Any]) -> Mapping[str, Any]:
    if len(documents) != 1:
        message = f"the text has {len(documents)} documents; give one LakeStream"
        raise InvalidDocumentError([Problem("", message)])
    if not isinstance(documents[0], dict):
        message = "the document is not a mapping; begin with apiVersion: lakestream.dev/v1alpha1"
        raise InvalidDocumentError([Problem("", message)])
    only: dict[str, Any] = documents[0]
    return only


def _problem(detail: ErrorDetails) -> Problem:
    context = detail.get("ctx", {})
    path = _path(detail["loc"])
    if detail["type"] == "json_invalid":
        # It was made of the document; what was given is all of it.
        deep = "recursion" in context["error"]
        return Problem(path, _TOO_DEEP if deep else f"the document cannot be read: {context['error']}")
    if detail["type"] == "lakestream":
        return Problem(f"{path}.{context['field']}", context["message"])
    return Problem(path, _message(detail, context))


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier():
            path += f".{step}"
        elif step != "[key]":
            path += f'["{step}"]'
    return path.removeprefix(".")


_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number, without quotes",
    "int_from_float": "a whole number",
    "float_type": "a number, without quotes",
    "bool_type": "true or false",
    "tuple_type": "a list; begin each entry with '-'",
    "dict_type": "a mapping",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "finite_number": "a finite number",
}
_LIMITS = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "less_than": ("lt", "must be less than {}"),
}


def _message(detail: ErrorDetails, context: Mapping[str, Any]) -> str:
    kind, given = detail["type"], detail["input"]
    if kind == "missing":
        return f"is required; add it: {_meaning(detail['loc'])}"
    if kind == "extra_forbidden":
        return _unknown_field(detail["loc"])
    if kind == "value_error":
        return str(context["error"])
    if kind in ("literal_error", "enum"):
        return f"is {_shown(given)}; choose {context['expected']}"
    if kind in _WANTED:
        how = "; put it in quotes" if kind == "string_type" and isinstance(given, (bool, int, float)) else ""
        return f"is {_shown(given)}; must be {_WANTED[kind]}{how}"
    if kind in _LIMITS:
        key, text = _LIMITS[kind]
        return f"is {_shown(given)}; {text.format(context[key])}"
    return _length(kind, given, context) or f"is {_shown(given)}; {detail['msg']}"


def _length(kind: str, given: Any, context: Mapping[str, Any]) -> str | None:
    # Pydantic counts a text that a validator of ours has seen first as if it were a list.
    text = isinstance(given, str)
    if kind in ("too_short", "string_too_short"):
        return "is empty; write it or remove the field" if text else "is empty; give at least one entry"
    if kind in ("too_long", "string_too_long"):
        return f"has {len(given)} {'characters' if text else 'entries'}; at most {context['max_length']}"
    return None


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)


def _unknown_field(location: Sequence[int | str]) -> str:
    fields = _fields(_model_at(location[:-1]))
    close = difflib.get_close_matches(str(location[-1]), fields, n=1)
    if close:
        return f"is not a field; did you mean {close[0]}?"
    return f"is not a field; remove it (there are: {', '.join(fields)})"


def _meaning(location: Sequence[int | str]) -> str:
    """The first paragraph of what a field means."""
    field = _fields(_model_at(location[:-1]))[str(location[-1])]
    return " ".join((field.description or "").partition("\n\n")[0].split())


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their names in documents."""
    return {str(field.validation_alias): field for field in model.model_fields.values()}


def _model_at(location: Sequence[int | str]) -> type[BaseModel]:
    """The model that describes the mapping at a path of the document."""
    model: type[BaseModel] = LakeStream
    for step in location:
        field = _fields(model).get(str(step))
        model = (_model_in(field.annotation) if field else None) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
