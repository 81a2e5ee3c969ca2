"""Records that one pass of a decoder in C reads by the schema: nothing rounded, wrapped, completed or left out.

Plain records are most. msgspec makes the decoder of the schema, and reads one of 240 bytes and ten columns in 0.7 µs.
What is not plain, `exact` reads. Whether a time is one, and a float the nearest, is told when they become columns
(`columns`).
"""

import builtins
from collections.abc import Callable, Collection, Sequence
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Annotated, Any

import msgspec
from msgspec import Raw
from msgspec.structs import astuple
from pyspark.sql import types as st

from lakestream.spark.digits import decimal_in, text_in

NotPlain = (ValueError, ArithmeticError, RecursionError)
"""What tells that a record is not plain (msgspec's errors are values')."""

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Since the epoch: the years 1 to 9999, the only ones that all of ISO 8601, SQL and Python know."""
FLOAT_MAX = (2 - 2.0**-23) * 2.0**127

# The years 1 and 9999 are left out for the offsets that lead out of them, the 29th of February for the years without.
_DAY = (
    "(?!000[01]|9999)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_TIME = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
OFFSET = "(?:Z|[+-](?:0[0-9]|1[0-7]):?[0-5][0-9])"
LOCAL = rf"\A{_DAY}(?:{_TIME})?\Z"
INSTANT = rf"\A{_DAY}(?:{_TIME}{OFFSET}?)?\Z"


def _integer(bits: int) -> Any:
    limit = 1 << (bits - 1)
    return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]


_SCALARS: dict[type[st.DataType], Any] = {
    st.StringType: str,
    st.BooleanType: bool,
    st.ByteType: _integer(8),
    st.ShortType: _integer(16),
    st.IntegerType: _integer(32),
    st.LongType: _integer(64),
    st.FloatType: Annotated[float, msgspec.Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)],
    st.DoubleType: float,
    st.BinaryType: bytes,
    st.DateType: date,
    st.TimestampType: Annotated[int, msgspec.Meta(ge=FIRST_SECOND, le=LAST_SECOND)] | str,
    st.TimestampNTZType: str,
}


def plain_decoder(
    schema: st.StructType, *, closed: bool = True, loose: Collection[int] = ()
) -> Callable[[bytes], tuple[Any, ...]]:
    """A function that reads the values of a record, in the order of the schema, as `columns` takes them.

    It raises one of `NotPlain` for records that are not plain.

    Args:
        schema: of the records.
        closed: a record with fields that the schema lacks is not plain. If not, these are passed over.
        loose: where in the schema there are columns of STRING that take any value, as its JSON; to read one takes
            longer.
    """
    kinds = _Kinds(closed)
    try:
        event = kinds.event(schema, loose)
    except ValueError:
        # A name with a quote, a backslash or a control character, which msgspec does not look for.
        return _never
    decode = msgspec.json.Decoder(event, dec_hook=kinds.check, float_hook=Decimal).decode

    def read(data: bytes) -> tuple[Any, ...]:
        return astuple(decode(data))

    # Of what it passes over, or leaves as it is, the decoder looks at the syntax, and not whether it is UTF-8.
    def read_open(data: bytes) -> tuple[Any, ...]:
        data.decode()
        return astuple(decode(data))

    def read_loosely(data: bytes) -> tuple[Any, ...]:
        data.decode()
        values = list(astuple(decode(data)))
        for at in loose:
            if (value := values[at]) is not None:
                values[at] = text_in(value)
        return tuple(values)

    if loose:
        return read_loosely
    return read if closed else read_open


def loose_strings(schema: st.StructType, data: bytes) -> frozenset[int]:
    """Where in the schema there are columns of STRING of which a record has a value that is none."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
    except NotPlain:
        return frozenset()
    strings = (at for at, field in enumerate(schema.fields) if isinstance(field.dataType, st.StringType))
    found = ((at, fields.get(schema.names[at])) for at in strings)
    return frozenset(at for at, value in found if value is not None and not bytes(value).startswith((b'"', b"null")))


def tells_of_surplus(error: Exception) -> bool:
    """Whether a record is not plain for a field that the schema lacks, as far as it was looked at."""
    return isinstance(error, msgspec.ValidationError) and str(error).startswith("Object contains unknown field")


class _Kinds:
    """Types of msgspec's for those of Spark; what they cannot say is checked by functions of our own."""

    def __init__(self, closed: bool) -> None:
        self._closed = closed
        self._checks: dict[type, Callable[[object], Decimal]] = {}

    def check(self, kind: type[Decimal], value: object) -> Decimal:
        return kind(self._checks[kind](value))

    def event(self, type: st.StructType, loose: Collection[int]) -> Any:
        # A null in a column that is NOT NULL is told when the column is there.
        kinds = (Raw if at in loose else self._kind(field.dataType) | None for at, field in enumerate(type.fields))
        return self._struct(type.names, [(kind, None) for kind in kinds])

    def _inner(self, type: st.StructType) -> Any:
        # Within a column, a null has to be told here.
        kinds = ((self._kind(field.dataType), field.nullable) for field in type.fields)
        return self._struct(
            type.names, [(kind | None, None) if is_nullable else (kind,) for kind, is_nullable in kinds]
        )

    def _struct(self, names: Sequence[str], fields: Sequence[tuple[Any, ...]]) -> Any:
        """A struct of msgspec's. A field is its kind, and what it is where there is none."""
        return msgspec.defstruct(
            "Event",
            [(f"f{position}", *field) for position, field in enumerate(fields)],
            rename={f"f{position}": name for position, name in enumerate(names)},
            forbid_unknown_fields=self._closed,
            kw_only=True,
            gc=False,
        )

    def _kind(self, type: st.DataType) -> Any:
        match type:
            case st.DecimalType():
                return self._decimal(type)
            case st.ArrayType():
                return list[self._element(type.elementType, type.containsNull)]  # type: ignore[misc]
            case st.MapType():
                return dict[str, self._element(type.valueType, type.valueContainsNull)]  # type: ignore[misc]
            case st.StructType():
                return self._inner(type)
        return _SCALARS[type.__class__]

    def _element(self, type: st.DataType, is_nullable: bool) -> Any:
        kind = self._kind(type)
        return kind | None if is_nullable else kind

    def _decimal(self, type: st.DecimalType) -> Any:
        kind = builtins.type("Decimal", (Decimal,), {})  # msgspec wants what a check gives back to be of the type
        self._checks[kind] = _fits(type.precision, type.scale)
        return kind


def _fits(precision: int, scale: int) -> Callable[[object], Decimal]:
    unit = Decimal((0, (1,), -scale))
    quantize: Callable[[Any, Decimal], Decimal] = Context(prec=precision, traps=[Inexact, InvalidOperation]).quantize

    def check(value: Any) -> Decimal:
        number = decimal_in(value) if value.__class__ is str else value
        if number.__class__ not in _NUMBERS:  # a boolean is an int to isinstance
            raise ValueError
        return quantize(number, unit)

    return check


_NUMBERS = frozenset({int, Decimal})


def _never(data: bytes) -> tuple[Any, ...]:
    raise ValueError
