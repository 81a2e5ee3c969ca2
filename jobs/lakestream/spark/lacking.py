"""What a record has and its schema has not, at any depth, each value where it was in the record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import types as st

Lacking: TypeAlias = Callable[[Any], Any]
"""From a value that fits a type to what of it the type lacks; None: nothing."""


@dataclass(frozen=True)
class Access:
    """How to get at the parts of a value."""

    fields: Callable[[Any], dict[str, Any] | None]
    """Of an object; None: it is null."""
    items: Callable[[Any], list[Any] | None]
    """Of an array."""
    kept: Callable[[dict[str, Any]], dict[str, Any]]
    """Fields that the schema lacks, as they are given back."""


def lacking_of(type: st.StructType, by: Access) -> Lacking:
    """A function from an object that fits to what of it the type lacks.

    What is lacking is where it was: under the names of its objects, and in arrays at its position, behind nulls.
    """
    known = frozenset(type.names)
    inner = [(field.name, rest) for field in type.fields if (rest := _lacking(field.dataType, by)) is not None]

    def struct(value: Any) -> Any:
        fields = by.fields(value)
        if fields is None:
            return None
        lacking = by.kept({name: item for name, item in fields.items() if name not in known})
        for name, field in inner:
            if name in fields and (rest := field(fields[name])) is not None:
                lacking[name] = rest
        return lacking or None

    return struct


def _lacking(type: st.DataType, by: Access) -> Lacking | None:
    """The same for a type; None: its values can lack nothing."""
    match type:
        case st.ArrayType():
            element = _lacking(type.elementType, by)
            return None if element is None else _lacking_array(element, by)
        case st.MapType():
            element = _lacking(type.valueType, by)
            return None if element is None else _lacking_map(element, by)
        case st.StructType():
            return lacking_of(type, by)
    return None


def _lacking_array(element: Lacking, by: Access) -> Lacking:
    def array(value: Any) -> Any:
        rest = [*map(element, by.items(value) or ())]
        while rest and rest[-1] is None:
            rest.pop()
        return rest or None

    return array


def _lacking_map(element: Lacking, by: Access) -> Lacking:
    def entries(value: Any) -> Any:
        found = ((key, element(item)) for key, item in (by.fields(value) or {}).items())
        return {key: rest for key, rest in found if rest is not None} or None

    return entries
