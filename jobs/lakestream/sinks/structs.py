"""What columns are made of, and structs that no sink can write: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakestream.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Part:
    """A column; or, at any depth within one, a field of a struct, an element of an array, a key or a value of a map."""

    path: str
    """Names of fields, with dots between; of elements, keys and values it is that of what they are in."""
    name: str | None
    """None: elements, keys and values have none."""
    type: DataType


def parts_of(output: StructType) -> Iterator[Part]:
    """All parts of all columns, each before what is in it."""
    for field in output.fields:
        yield from _within(Part(field.name, field.name, field.dataType))


def _within(part: Part) -> Iterator[Part]:
    yield part
    match part.type:
        case StructType() as type:
            for field in type.fields:
                yield from _within(Part(f"{part.path}.{field.name}", field.name, field.dataType))
        case ArrayType() as type:
            yield from _within(Part(part.path, None, type.elementType))
        case MapType() as type:
            yield from _within(Part(part.path, None, type.keyType))
            yield from _within(Part(part.path, None, type.valueType))


def require_structs(output: StructType) -> None:
    """Check that each struct has fields, and no two of one name: Spark makes others, and writes them nowhere.

    Raises:
        SettingsError: names the column.
    """
    for part in parts_of(output):
        if not isinstance(part.type, StructType):
            continue
        if not part.type.fields:
            raise SettingsError(f"column {part.path}: a struct without fields; leave it out in spec.transform")
        name, times = Counter(part.type.names).most_common(1)[0]
        if times > 1:
            raise SettingsError(f"column {part.path}: a struct with field {name} twice; rename one in spec.transform")
