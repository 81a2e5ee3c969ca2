"""What has to become of any JSON by any schema: a model that shares no code with the parser.

A record fits, and comes out with the same values, the rest of it rescued; or has fields that are why it does not.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql import types as sql

from lakestream.testing.any_json import Json, Number, Object, Time


def misfits(json_: Json, type: sql.DataType, path: str = "") -> Iterator[str]:
    """The paths of the values that a type does not take; none if the value fits."""
    for inner_path, value, inner in _inner(json_, type, path):
        if value is not None:
            yield from misfits(value, inner, inner_path)
    if isinstance(type, sql.StructType) and isinstance(json_, Object):
        for field in type.fields:
            if not field.nullable and json_.last.get(field.name) is None:
                yield f"{path}.{field.name}"
    if not _takes(json_, type):
        yield path


def _inner(json_: Json, type: sql.DataType, path: str) -> Iterator[tuple[str, Json, sql.DataType]]:
    match json_, type:
        case tuple(), sql.ArrayType():
            for position, value in enumerate(json_):
                yield f"{path}[{position}]", value, type.elementType
        case Object(), sql.MapType():
            for name, value in json_.last.items():
                yield f"{path}.{name}", value, type.valueType
        case Object(), sql.StructType():
            for field in type.fields:
                yield f"{path}.{field.name}", json_.last.get(field.name), field.dataType


_FLOAT_LIMIT = {sql.FloatType: Fraction(2) ** 128 - Fraction(2) ** 103, sql.DoubleType: Fraction(2) ** 1024 - 2**970}
_BITS = {sql.ByteType: 7, sql.ShortType: 15, sql.IntegerType: 31, sql.LongType: 63}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DECIMAL = re.compile(r"[ \t\r\n]*[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\r\n]*")
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001


def _takes(json_: Json, type: sql.DataType) -> bool:
    match json_, type:
        case (_, sql.StringType()) | (bool(), sql.BooleanType()):
            return True
        case (tuple(), sql.ArrayType()) | (Object(), sql.MapType() | sql.StructType()):
            return True
        case Number(), _:
            return _takes_number(json_, type)
        case Time(), _:
            return _takes_time(json_, type)
        case str(), sql.DecimalType():
            return _DECIMAL.fullmatch(json_) is not None and _takes_number(Number(json_.strip()), type)
        case str(), sql.BinaryType():
            return _BASE64.fullmatch(json_) is not None
    return False


def _takes_number(number: Number, type: sql.DataType) -> bool:
    match type:
        case sql.ByteType() | sql.ShortType() | sql.IntegerType() | sql.LongType():
            limit = 1 << _BITS[type.__class__]
            return number.is_integer and -limit <= number.value < limit
        case sql.FloatType() | sql.DoubleType():
            return abs(number.value) < _FLOAT_LIMIT[type.__class__]
        case sql.DecimalType():
            units = number.value * 10**type.scale
            return units.denominator == 1 and bool(abs(units) < 10**type.precision)
        case sql.TimestampType():
            return number.is_integer and -62135596800 <= number.value <= 253402300799
    return False


def _takes_time(time: Time, type: sql.DataType) -> bool:
    match type:
        case sql.TimestampType():
            since = (time.moment - _EPOCH) - (time.offset or timedelta())
            return _FIRST - _EPOCH <= since <= _LAST - _EPOCH
        case sql.TimestampNTZType():
            return time.offset is None
        case sql.DateType():
            return not time.has_time
    return False


def is_same(json_: Json, type: sql.DataType, found: Any) -> bool:
    """Whether what Spark has found is the value of JSON that fits.

    Args:
        json_: fits the type.
        type: of Spark's.
        found: as Arrow gives it to Python: a map is a list of pairs.
    """
    match json_, type:
        case None, _:
            return found is None
        case tuple(), sql.ArrayType():
            pairs = zip(json_, found, strict=True)
            return all(is_same(value, type.elementType, inner) for value, inner in pairs)
        case Object(), sql.MapType():
            last, values = json_.last, dict(found)
            if len(found) != len(last) or values.keys() != last.keys():
                return False
            return all(is_same(last[name], type.valueType, values[name]) for name in last)
        case Object(), sql.StructType():
            return all(is_same(json_.last.get(f.name), f.dataType, found[f.name]) for f in type.fields)
    return _is_scalar(json_, type, found)


def _is_scalar(json_: Json, type: sql.DataType, found: Any) -> bool:
    match json_, type:
        case str() | Time(), sql.StringType():
            return bool(found == (json_ if isinstance(json_, str) else json_.text))
        case _, sql.StringType():
            return bool(tagged(found) == _tagged(json_))
        case Number(), _:
            return _is_number(json_, type, found)
        case Time(), sql.DateType():
            return bool(found == json_.moment.date())
        case Time(), _:
            return bool(found.replace(tzinfo=None) == json_.moment - (json_.offset or timedelta()))
        case str(), sql.DecimalType():
            return bool(found == Decimal(json_.strip()))
        case str(), _:
            return bytes(found) == base64.b64decode(json_)
    return bool(found == json_)


def _is_number(number: Number, type: sql.DataType, found: Any) -> bool:
    match type:
        case sql.FloatType():
            return _is_nearest(number.value, found, "f", "i") and _has_sign(number, found)
        case sql.DoubleType():
            return _is_nearest(number.value, found, "d", "q") and _has_sign(number, found)
        case sql.TimestampType():
            return bool(found.replace(tzinfo=None) == _EPOCH + timedelta(seconds=int(number.value)))
    return bool(Fraction(found) == number.value)


def _is_nearest(number: Fraction, found: float, floating: str, integer: str) -> bool:
    """Whether both neighbours are at least as far. Positive floats are in the order of their bits."""
    (bits,) = struct.unpack(integer, struct.pack(floating, abs(found)))
    neighbours = [struct.unpack(floating, struct.pack(integer, bits + step))[0] for step in (-1, 1) if bits + step >= 0]
    distance = abs(Fraction(found) - number)
    return all(distance <= abs(Fraction(each) - abs(number)) for each in neighbours if math.isfinite(each))


def _has_sign(number: Number, found: float) -> bool:
    """A zero has that of its digits, unless they are an integer's: of these there is no other zero than 0."""
    is_negative = number.text.startswith("-") and not number.is_integer
    return found != 0 or math.copysign(1, found) == (-1 if is_negative else 1)


def lacking(json_: Json, type: sql.DataType) -> Any:
    """What a type lacks of a value that fits, as `tagged` gives it; None: nothing."""
    match json_, type:
        case tuple(), sql.ArrayType():
            found = [lacking(value, type.elementType) for value in json_]
            while found and found[-1] is None:
                del found[-1]
            return found or None
        case Object(), sql.MapType():
            items = {name: lacking(value, type.valueType) for name, value in json_.last.items()}
            return {name: rest for name, rest in items.items() if rest is not None} or None
        case Object(), sql.StructType():
            rest: dict[str, Any] = {}
            for name, value in json_.last.items():
                if name not in type.names:
                    rest[name] = _tagged(value)
                elif (inner := lacking(value, type[name].dataType)) is not None:
                    rest[name] = inner
            return rest or None
    return None


def tagged(text: str | None) -> Any:
    """JSON in which a number is `("number", digits)`."""
    if text is None:
        return None

    def number(digits: str) -> tuple[str, str]:
        return "number", digits

    return json.loads(text, parse_int=number, parse_float=number)


def _tagged(json_: Json) -> Any:
    match json_:
        case Number():
            return "number", json_.text
        case Time():
            return json_.text
        case Object():
            return {name: _tagged(value) for name, value in json_.last.items()}
        case tuple():
            return [_tagged(value) for value in json_]
    return json_
