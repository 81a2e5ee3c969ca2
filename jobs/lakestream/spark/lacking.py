"""What a record has and its schema has not, at any depth, each value where it was in the record."""

from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql import types as st

Lacking: TypeAlias = Callable[[Any], Any]
"""From a value that fits a type and is not null to what of it the type lacks; None: nothing."""


def _lacking(type: st.DataType) -> Lacking | None:
    """A function from a value that fits to what of it the type lacks, or None; None: it can lack nothing.

    What is lacking is where it was: under the names of its objects, and in arrays at its position, behind nulls.
    """
    match type:
        case st.ArrayType():
            element = _lacking(type.elementType)
            return None if element is None else _lacking_array(element)
        case st.MapType():
            element = _lacking(type.valueType)
            return None if element is None else _lacking_map(element)
        case st.StructType():
            return lacking_of(type)
    return None


def _lacking_array(element: Lacking) -> Lacking:
    def array(value: Any) -> Any:
        rest = [None if item is None else element(item) for item in value]
        while rest and rest[-1] is None:
            rest.pop()
        return rest or None

    return array


def _lacking_map(element: Lacking) -> Lacking:
    def entries(value: Any) -> Any:
        found = ((key, element(item)) for key, item in value.items() if item is not None)
        return {key: rest for key, rest in found if rest is not None} or None

    return entries


def lacking_of(type: st.StructType) -> Lacking:
    known = frozenset(type.names)
    inner = [(field.name, rest) for field in type.fields if (rest := _lacking(field.dataType)) is not None]

    def struct(value: Any) -> Any:
        lacking = {name: item for name, item in value.items() if name not in known}
        for name, field in inner:
            if (item := value.get(name)) is not None and (rest := field(item)) is not None:
                lacking[name] = rest
        return lacking or None

    return struct
