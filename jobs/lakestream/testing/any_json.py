"""Any JSON for any schema, for Hypothesis.

It is drawn as a tree whose numbers and times know what they mean, so that nothing need be parsed to judge what became
of it (`json_model`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st
from pyspark.sql import types as sql


@dataclass(frozen=True)
class Number:
    """A number by its digits."""

    text: str

    @property
    def is_integer(self) -> bool:
        return not set(self.text) & set(".eE")

    @property
    def value(self) -> Fraction:
        """Of an absurd exponent, one that is absurd enough for every type."""
        digits, _, exponent = self.text.lower().partition("e")
        return Fraction(digits) * Fraction(10) ** max(-5000, min(5000, int(exponent or 0)))


@dataclass(frozen=True)
class Time:
    """A text that is a time, as it is written."""

    text: str
    moment: datetime
    has_time: bool
    """Whether there is something behind the date."""
    offset: timedelta | None


@dataclass(frozen=True)
class Object:
    """Names may be there twice."""

    items: tuple[tuple[str, Json], ...]

    @property
    def last(self) -> dict[str, Json]:
        return dict(self.items)


Json: TypeAlias = "bool | str | Number | Time | Object | tuple[Json, ...] | None"

NAMES = ("a", "b", "A", "x y", "it's", "é")
_INTEGERS = [
    sign * (1 << bits) + step for bits in (7, 8, 15, 31, 32, 63, 64) for sign in (1, -1) for step in (-1, 0, 1)
]
_SECONDS = [0, 1769860800, 253402300799, 253402300800, -62135596800, -62135596801]
_SECONDS += [1769860800 * 10**power for power in (3, 6, 9, 12)]
_ODD_NUMBERS = (
    "-0", "-0.0", "1.10", "1.0", "1e3", "1E-5", "1.239", "0e10", "1e39", "-1e39", "1e400", "1e-400", "1e30",
    "3.4028235e38", "3.4028235677973366e38", "16777217", "9007199254740993", "100000000000000000000.5", "0.1",
    "1e100000000", "1e-100000000", "0e100000000", "1.00000005960464477540", "999.99", "999.995", "9" * 400,
    "0." + "3" * 1100, "1.25" + "0" * 1100,
)  # fmt: skip
_NO_TIMES = (
    "12:00", "T12:00:00Z", "2026", "2026-01", "20260131", "12345", "7", "2026-02-30", "2026-13-01", "0000-01-01",
    "10000-01-01", "+2026-01-31", "2026-01-31T25:00:00Z", "2026-01-31T12:00:00+19:00", "2026-01-31 junk",
    "2026-01-31 12:00 Europe/Berlin", "yesterday", "NaN", "Infinity", "", " ", "1,5", "true",
    "2026-01-31T12:00:00." + "1" * 5000 + "x",
)  # fmt: skip

_texts = st.sampled_from(_NO_TIMES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_numbers: st.SearchStrategy[Number] = st.builds(
    Number,
    st.sampled_from(_ODD_NUMBERS)
    | st.sampled_from(_INTEGERS + _SECONDS).map(str)
    | st.integers(-200, 200).map(str)
    | st.decimals(-10_000, 10_000, places=3).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@st.composite
def _times(draw: st.DrawFn) -> Time:
    years = st.sampled_from([1, 2, 1582, 1899, 1900, 9998, 9999]) | st.integers(1, 9999)
    day = date(draw(years), draw(st.integers(1, 12)), draw(st.sampled_from([1, 28]) | st.integers(1, 28)))
    if draw(st.booleans()):
        day = draw(st.sampled_from([date(2024, 2, 29), date(2026, 1, 31), date(1, 1, 1), date(9999, 12, 31)]))
    text, moment = day.isoformat(), datetime(day.year, day.month, day.day)  # noqa: DTZ001 as it is written
    if draw(st.integers(0, 3)) == 0:
        return Time(text, moment, False, None)
    hour, minute, second = draw(st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)))
    text += f"{draw(st.sampled_from('T '))}{hour:02}:{minute:02}"
    moment += timedelta(hours=hour, minutes=minute)
    if draw(st.booleans()):
        fraction = draw(st.text("0123456789", max_size=9) | st.just("1" * 5000))
        text += f":{second:02}" + (f".{fraction}" if fraction else "")
        moment += timedelta(seconds=second, microseconds=int(f"{fraction[:6]:0<6}"))
    offset = draw(st.none() | st.integers(-18 * 60, 18 * 60))
    if offset is None:
        return Time(text, moment, True, None)
    form = draw(st.sampled_from(["{0}{1:02}:{2:02}", "{0}{1:02}{2:02}", " {0}{1:02}:{2:02}"]))
    text += form.format("-" if offset < 0 else "+", *divmod(abs(offset), 60)) if offset else "Z"
    return Time(text, moment, True, timedelta(minutes=offset))


_leaves: st.SearchStrategy[Json] = st.none() | st.booleans() | _texts | _numbers | _times()


def _objects(values: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(Object, st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=3).map(tuple))


anything: st.SearchStrategy[Json] = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3).map(tuple) | _objects(inner), max_leaves=6
)

_SCALARS = (
    sql.StringType(), sql.BooleanType(), sql.ByteType(), sql.ShortType(), sql.IntegerType(), sql.LongType(),
    sql.FloatType(), sql.DoubleType(), sql.DecimalType(5, 2), sql.DecimalType(38, 18), sql.DecimalType(20, 0),
    sql.DateType(), sql.TimestampType(), sql.TimestampNTZType(), sql.BinaryType(),
)  # fmt: skip


def _structs(types: st.SearchStrategy[sql.DataType], is_top: bool = False) -> st.SearchStrategy[sql.StructType]:
    # Spark resolves columns without regard to case.
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique_by=str.lower)
    fields = st.tuples(types, st.just(True) if is_top else st.booleans())
    return names.flatmap(
        lambda chosen: st.tuples(*[fields] * len(chosen)).map(
            lambda found: sql.StructType(
                [sql.StructField(name, *field) for name, field in zip(chosen, found, strict=True)]
            )
        )
    )


_types: st.SearchStrategy[sql.DataType] = st.recursive(
    st.sampled_from(_SCALARS),
    lambda inner: (
        st.builds(sql.ArrayType, inner) | st.builds(sql.MapType, st.just(sql.StringType()), inner) | _structs(inner)
    ),
    max_leaves=4,
)
schemas: st.SearchStrategy[sql.StructType] = _structs(_types, is_top=True)
"""Of records: columns of all types, none of them NOT NULL."""


def ddl(type: sql.DataType) -> str:
    """As `spec.schema` writes it."""
    match type:
        case sql.ArrayType():
            return f"array<{ddl(type.elementType)}>"
        case sql.MapType():
            return f"map<string,{ddl(type.valueType)}>"
        case sql.StructType():
            return f"struct<{columns(type, ':')}>"
    return type.simpleString()


def columns(type: sql.StructType, separator: str = " ") -> str:
    """The fields of a struct as DDL."""
    written = (f"`{f.name}`{separator}{ddl(f.dataType)}{'' if f.nullable else ' not null'}" for f in type.fields)
    return ", ".join(written)


def records(schema: sql.StructType) -> st.SearchStrategy[Object]:
    """Records of which most values fit the schema."""
    return _likely_object(schema)


def _likely(type: sql.DataType) -> st.SearchStrategy[Json]:
    fitting: st.SearchStrategy[Any]
    match type:
        case sql.ArrayType():
            fitting = st.lists(_likely(type.elementType), max_size=3).map(tuple)
        case sql.MapType():
            keyed = st.tuples(st.sampled_from(NAMES), _likely(type.valueType))
            fitting = st.builds(Object, st.lists(keyed, max_size=3).map(tuple))
        case sql.StructType():
            fitting = _likely_object(type)
        case sql.StringType():
            fitting = anything
        case sql.BooleanType():
            fitting = st.booleans()
        case sql.DateType() | sql.TimestampNTZType() | sql.TimestampType():
            fitting = _times() | st.sampled_from(_SECONDS).map(str).map(Number)
        case sql.BinaryType():
            fitting = st.binary(max_size=7).map(lambda data: base64.b64encode(data).decode())
        case _:
            fitting = _numbers
    return st.integers(0, 12).flatmap(lambda dice: anything if dice == 0 else st.none() if dice == 1 else fitting)


def _likely_object(type: sql.StructType) -> st.SearchStrategy[Object]:
    known = st.tuples(*[st.tuples(st.just(field.name), _likely(field.dataType)) for field in type.fields])
    more = st.just(()) | st.lists(st.tuples(st.sampled_from(NAMES), anything), max_size=2).map(tuple)
    return st.tuples(known, more, st.booleans()).map(
        lambda drawn: Object(drawn[1] + drawn[0] if drawn[2] else drawn[0] + drawn[1])
    )


def text_of(json_: Json, style: Sequence[str] = (",", ":")) -> str:
    """As a producer prints it. Args: style is what separates, and what comes behind a name."""
    match json_:
        case Number():
            return json_.text
        case Time():
            return f'"{json_.text}"'
        case Object():
            pairs = (f"{text_of(name, style)}{style[1]}{text_of(value, style)}" for name, value in json_.items)
            return "{" + style[0].join(pairs) + "}"
        case tuple():
            return "[" + style[0].join(text_of(value, style) for value in json_) + "]"
    return json.dumps(json_, ensure_ascii=style[0] == ",")
