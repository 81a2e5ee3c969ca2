"""Records read by the schema with every digit of theirs: whatever is not plain (`plain`), a few in most streams.

A record comes out as the values of the schema, as `columns` takes them, and what the schema lacks; or it is refused,
with the field that is why.

| type | is | refused |
|---|---|---|
| STRING | a string; of any other value its JSON, numbers with the digits that they came with | |
| BOOLEAN | true, false | |
| TINYINT … BIGINT | a number without fraction and exponent | what is out of the type's range |
| FLOAT, DOUBLE | a number; the nearest value of the type | what is nearest to infinity |
| DECIMAL | a number, or a string with one in it | digits that do not fit |
| TIMESTAMP | ISO 8601, or whole seconds since the epoch | outside of the years 1 to 9999; a named zone |
| TIMESTAMP_NTZ | ISO 8601 without an offset | outside of the years 1 to 9999 |
| DATE | yyyy-mm-dd | a time behind it |
| BINARY | base64 with its padding | |
| ARRAY, MAP, STRUCT | array; object; object | an element that is refused; null where the type has none |

Times keep microseconds, and what is finer is cut off. Of a name that occurs twice in an object the last value counts.
"""

import binascii
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from struct import pack, unpack
from typing import Any

from msgspec import Raw
from pyspark.sql import types as st

from lakestream.spark.digits import BLANKS, RecordError, decimal_in, decoded, text_of
from lakestream.spark.lacking import Access, lacking_of
from lakestream.spark.plain import FIRST_SECOND, INSTANT, LAST_SECOND, LOCAL

NOT_AN_OBJECT = "not a JSON object"
MISMATCH = "does not match the schema"
MISSING = "missing"
NO_DATE = "a time without a date"
SECONDS = "seconds since the epoch expected"

_Value = Any
"""As `digits` reads it."""

_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_TIME = (
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?)?"
    r"(?: ?(?:(?P<utc>Z|UTC|GMT)|(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?(?P<minutes>[0-9]{2}))?))?"
)
_DATE = re.compile(_DAY)
_MOMENT = re.compile(f"{_DAY}(?:[T ]{_TIME})?")
_PARTS = ("year", "month", "day", "hour", "minute", "second", "hours", "minutes")
_PLAIN_INSTANT, _PLAIN_LOCAL = re.compile(INSTANT), re.compile(LOCAL)
_TIME_ONLY = re.compile("T?[0-9]{1,2}:.*", re.DOTALL)

_UNITS = (("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9))


_READ = Access(fields=lambda value: value, items=lambda value: value, kept=lambda fields: fields)


@dataclass(frozen=True)
class Read:
    """A record that fits."""

    values: tuple[Any, ...]
    """In the order of the schema."""
    lacking: str | None
    """JSON of what the schema lacks, at the paths of the record; None: nothing."""


def exact_reader(schema: st.StructType) -> Callable[[bytes], Read]:
    """A function that reads a record by the schema; it raises RecordError."""
    event, lacking = _struct(schema, top=True), lacking_of(schema, _READ)

    def read(data: bytes) -> Read:
        record = decoded(data)
        if not isinstance(record, dict):
            raise RecordError(NOT_AN_OBJECT)
        values, rest = event(record), lacking(record)
        return Read(values, None if rest is None else text_of(rest))

    return read


_Reader = Callable[[_Value], _Value]
"""From a value that is not null to one of a column."""


def _reader(type: st.DataType) -> _Reader:
    match type:
        case st.DecimalType():
            return _decimal(type)
        case st.ArrayType():
            return _array(type)
        case st.MapType() if isinstance(type.keyType, st.StringType):
            return _map(type)
        case st.StructType():
            return _struct(type)
    if type.__class__ not in _SCALARS:
        raise TypeError(f"a value of {type.simpleString()} is not read from JSON")
    return _SCALARS[type.__class__]


def _mismatch() -> RecordError:
    return RecordError(MISMATCH, "")


def _misfit(type: str) -> RecordError:
    return RecordError(f"does not fit {type}", "")


def _string(value: _Value) -> _Value:
    return value if isinstance(value, str) else text_of(value)


def _boolean(value: _Value) -> _Value:
    if not isinstance(value, bool):
        raise _mismatch()
    return value


def _integer(name: str, bits: int) -> _Reader:
    limit = 1 << (bits - 1)

    def integer(value: _Value) -> _Value:
        digits = _digits(value)
        if digits.strip(b"-0123456789"):
            raise _mismatch()
        if not _INTEGER.fullmatch(digits) or not -limit <= int(digits) < limit:
            raise _misfit(name)
        return int(digits)

    return integer


def _digits(value: _Value) -> bytes:
    if not isinstance(value, Raw):
        raise _mismatch()
    return bytes(value)


def _floating(value: _Value) -> str:
    digits = _digits(value).decode()
    # An integer without a sign, for Spark's own reader and `plain`; -0.0 and -0e0 have one.
    return "0" if digits == "-0" else digits


def _double(value: _Value) -> _Value:
    number = float(_floating(value))
    if math.isinf(number):
        raise _misfit("double")
    return number


_FLOAT_END = 2.0**128 - 2.0**103
"""The first number that is as near to infinity as to the largest float."""


def _float(value: _Value) -> _Value:
    digits = _floating(value)
    number = float(digits)
    # It has been rounded once, and is to be again: if it lies in the middle of two floats, then to the side that the
    # digits are on.
    if number and not math.isinf(number) and (exact := Decimal(digits)) != (rounded := Decimal(number)):
        number = math.nextafter(number, math.inf if exact > rounded else -math.inf) if _is_even(number) else number
    if abs(number) >= _FLOAT_END:
        raise _misfit("float")
    return unpack("f", pack("f", number))[0]


def _is_even(number: float) -> bool:
    return bool(unpack("q", pack("d", number))[0] % 2 == 0)


def _decimal(type: st.DecimalType) -> _Reader:
    unit = Decimal((0, (1,), -type.scale))
    context = Context(prec=type.precision, traps=[Inexact, InvalidOperation])

    def decimal(value: _Value) -> _Value:
        try:
            number = decimal_in(value if isinstance(value, str) else _digits(value).decode())
            if number is None:
                raise _mismatch()
            return context.quantize(number, unit)
        except (Inexact, InvalidOperation) as error:
            raise _misfit(type.simpleString()) from error

    return decimal


def _binary(value: _Value) -> _Value:
    if not isinstance(value, str):
        raise _mismatch()
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise _mismatch() from error


def _stripped(value: _Value) -> str:
    if not isinstance(value, str):
        raise _mismatch()
    return value.strip(BLANKS)


def _date(value: _Value) -> _Value:
    found = _DATE.fullmatch(_stripped(value))
    if found is None:
        raise _mismatch()
    try:
        return date(int(found["year"]), int(found["month"]), int(found["day"]))
    except ValueError as error:
        raise _mismatch() from error


def _instant(value: _Value) -> _Value:
    if isinstance(value, Raw):
        return _seconds(value)
    if _PLAIN_INSTANT.match(text := _stripped(value)):
        return text
    moment, offset = _moment(text)
    try:
        return moment.replace(tzinfo=UTC) - (offset or timedelta())
    except OverflowError as error:
        raise _mismatch() from error


def _seconds(value: Raw) -> int:
    digits = bytes(value)
    if digits.strip(b"-0123456789"):
        raise _mismatch()
    if not _INTEGER.fullmatch(digits):
        raise _misfit("timestamp")
    seconds = int(digits)
    if FIRST_SECOND <= seconds <= LAST_SECOND:
        return seconds
    for unit, per_second in _UNITS:
        if FIRST_SECOND <= seconds // per_second <= LAST_SECOND:
            raise RecordError(f"{SECONDS}, these look like {unit}", "")
    raise _misfit("timestamp")


def _local(value: _Value) -> _Value:
    if _PLAIN_LOCAL.match(text := _stripped(value)):
        return text
    moment, offset = _moment(text)
    if offset is not None:
        raise _mismatch()
    return moment


def _moment(text: str) -> tuple[datetime, timedelta | None]:
    """Date and time as they are written, and the offset, if there is one."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise RecordError(NO_DATE, "") if _TIME_ONLY.fullmatch(text) else _mismatch()
    year, month, day, hour, minute, second, hours, minutes = (int(found[name] or 0) for name in _PARTS)
    micros = int((found["fraction"] or "")[:6].ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 as written, the offset apart
    except ValueError as error:
        raise _mismatch() from error
    if found["sign"] is None:
        return moment, timedelta() if found["utc"] else None
    offset = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or offset > timedelta(hours=18):  # Java's limit
        raise _mismatch()
    return moment, -offset if found["sign"] == "-" else offset


_SCALARS: dict[type[st.DataType], _Reader] = {
    st.StringType: _string,
    st.BooleanType: _boolean,
    st.ByteType: _integer("tinyint", 8),
    st.ShortType: _integer("smallint", 16),
    st.IntegerType: _integer("int", 32),
    st.LongType: _integer("bigint", 64),
    st.FloatType: _float,
    st.DoubleType: _double,
    st.BinaryType: _binary,
    st.DateType: _date,
    st.TimestampType: _instant,
    st.TimestampNTZType: _local,
}


def _null(is_taken: bool) -> _Value:
    if not is_taken:
        raise RecordError(MISSING, "")


def _array(type: st.ArrayType) -> _Reader:
    element = _reader(type.elementType)

    def array(value: _Value) -> _Value:
        if not isinstance(value, list):
            raise _mismatch()
        read = []
        for position, item in enumerate(value):
            try:
                read.append(_null(type.containsNull) if item is None else element(item))
            except RecordError as error:
                raise error.within(f"[{position}]") from error
        return read

    return array


def _map(type: st.MapType) -> _Reader:
    element = _reader(type.valueType)

    def entries(value: _Value) -> _Value:
        if not isinstance(value, dict):
            raise _mismatch()
        read = {}
        for key, item in value.items():
            try:
                read[key] = _null(type.valueContainsNull) if item is None else element(item)
            except RecordError as error:
                raise error.within(f".{key}") from error
        return read

    return entries


def _struct(type: st.StructType, *, top: bool = False) -> _Reader:
    fields = [(field.name, _reader(field.dataType), field.nullable or top) for field in type.fields]

    def struct(value: _Value) -> _Value:
        if not isinstance(value, dict):
            raise _mismatch()
        read = []
        for name, field, is_nullable in fields:
            item = value.get(name)
            try:
                read.append(_null(is_nullable) if item is None else field(item))
            except RecordError as error:
                raise error.within(f".{name}") from error
        return tuple(read)

    return struct
