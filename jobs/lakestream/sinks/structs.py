"""Structs that no sink can write: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakestream.errors import SettingsError


def require_structs(output: StructType) -> None:
    """Check that each struct has fields, and no two of one name: Spark makes others, and writes them nowhere.

    Raises:
        SettingsError: names the column.
    """
    for field in output.fields:
        for path, struct in _structs(field.name, field.dataType):
            if not struct.fields:
                raise SettingsError(f"column {path}: a struct without fields; leave it out in spec.transform")
            name, times = Counter(struct.names).most_common(1)[0]
            if times > 1:
                raise SettingsError(f"column {path}: a struct with field {name} twice; rename one in spec.transform")


def _structs(path: str, type: DataType) -> Iterator[tuple[str, StructType]]:
    match type:
        case StructType():
            yield path, type
            for field in type.fields:
                yield from _structs(f"{path}.{field.name}", field.dataType)
        case ArrayType():
            yield from _structs(path, type.elementType)
        case MapType():
            yield from _structs(path, type.keyType)
            yield from _structs(path, type.valueType)
