"""Records that Spark's `from_json` reads as they are: nothing rounded, wrapped, completed or left out.

`from_json` is lenient where an alteration would go unseen. Of its reading of each type (Spark 3.5.9, seen by running
it) only that part is plain here in which every value comes out equal; what is not plain, `exact` reads. Plain records
are most, so they are told by the one pass of a decoder in C, which msgspec makes of the schema: some 0.3 µs for a
record of 345 bytes and ten columns, and 0.5 µs more for each TIMESTAMP.
"""

import builtins
import json
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation, Rounded
from typing import Annotated, Any

import msgspec
from pyspark.sql import types as st

NotPlain = (ValueError, ArithmeticError, RecursionError)
"""What a decoder raises (msgspec's errors are values')."""

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Since the epoch: the years 1 to 9999, the only ones that all of ISO 8601, SQL and Python know."""
FLOAT_MAX = (2 - 2.0**-23) * 2.0**127

# The years 1 and 9999 are left out for the offsets that lead out of them, the 29th of February for the years without.
_DAY = (
    "(?!000[01]|9999)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_MINUTES = "[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":[0-5][0-9](?:\.[0-9]{1,9})?"
_OFFSET = "(?:Z|[+-](?:0[0-9]|1[0-7]):?[0-5][0-9])"
LOCAL = rf"\A{_DAY}(?:{_MINUTES}(?:{_SECONDS})?)?\Z"
# Spark takes no offset directly behind the minutes.
INSTANT = rf"\A{_DAY}(?:{_MINUTES}(?:{_SECONDS}{_OFFSET}?)?)?\Z"


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
    st.TimestampType: Annotated[int, msgspec.Meta(ge=FIRST_SECOND, le=LAST_SECOND)]
    | Annotated[str, msgspec.Meta(pattern=INSTANT)],
    st.TimestampNTZType: Annotated[str, msgspec.Meta(pattern=LOCAL)],
}


def plain_decoder(schema: st.StructType) -> Callable[[bytes], object]:
    """A function that raises one of `NotPlain` for every record that is not plain. Its result means nothing."""
    kinds = _Kinds()
    try:
        event = kinds.struct(schema, top=True)
    except ValueError:
        # A name with a quote, a backslash or a control character, which msgspec does not look for.
        return _never
    decode = msgspec.json.Decoder(event, dec_hook=kinds.check, float_hook=Decimal).decode
    if not kinds.has_maps:
        return decode

    def decode_distinct(data: bytes) -> object:
        return decode(data), _DISTINCT.decode(data.decode())

    return decode_distinct


class _Seen:
    """Stands for a value that a check has let pass."""


class _Kinds:
    """Types of msgspec's for those of Spark; what they cannot say is checked by functions of our own."""

    def __init__(self) -> None:
        self.has_maps = False
        self._checks: dict[type, Callable[[object], object]] = {}

    def check(self, kind: type, value: object) -> object:
        self._checks[kind](value)
        return kind()

    def struct(self, type: st.StructType, *, top: bool = False) -> Any:
        # A null in a column that is NOT NULL is told when the event is there, with those that must not be null for the
        # sink; within a column it has to be told here.
        fields: list[Any] = []
        for position, field in enumerate(type.fields):
            kind = self._kind(field.dataType)
            fields.append((f"f{position}", kind | None, None) if field.nullable or top else (f"f{position}", kind))
        return msgspec.defstruct(
            "Event",
            fields,
            rename={f"f{position}": field.name for position, field in enumerate(type.fields)},
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
        )

    def _kind(self, type: st.DataType) -> Any:
        match type:
            case st.DecimalType():
                return self._decimal(type)
            case st.ArrayType():
                return list[self._kind(type.elementType) | None]  # type: ignore[misc]
            case st.MapType():
                self.has_maps = True
                return dict[str, self._kind(type.valueType) | None]  # type: ignore[misc]
            case st.StructType():
                return self.struct(type)
        return _SCALARS[type.__class__]

    def _decimal(self, type: st.DecimalType) -> Any:
        kind = builtins.type("Decimal", (_Seen,), {})
        self._checks[kind] = _fits(type.precision, type.scale)
        return kind


def _fits(precision: int, scale: int) -> Callable[[object], object]:
    unit = Decimal((0, (1,), -scale))
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    # Java takes the square of the digits for a number, also of zeros behind it.
    short = Context(prec=2 * precision, traps=[Rounded])

    def check(value: object) -> object:
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise ValueError
        return context.quantize(short.plus(value), unit)

    return check


def _require_distinct(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError


# Of a key that occurs twice in a map, from_json would keep both values.
_DISTINCT = json.JSONDecoder(object_pairs_hook=_require_distinct)


def _never(data: bytes) -> object:
    raise ValueError
