"""One record never holds a stream up: values of a megabyte are read or refused in seconds, whatever the column.

What takes the square of its length takes hours of these; the suite's time limit is the only one here.
"""

from __future__ import annotations

import pytest
from pyspark.sql import types as st

from lakestream.spark.events import EventReader

LENGTH = 1_000_000
TYPES = {
    "decimal": st.DecimalType(38, 18),
    "double": st.DoubleType(),
    "float": st.FloatType(),
    "long": st.LongType(),
    "moment": st.TimestampType(),
    "local": st.TimestampNTZType(),
    "date": st.DateType(),
    "binary": st.BinaryType(),
    "boolean": st.BooleanType(),
    "map": st.MapType(st.StringType(), st.DecimalType(10, 2)),
    "array": st.ArrayType(st.DecimalType(10, 2)),
    "text": st.StringType(),
}
READER = EventReader(st.StructType([st.StructField(name, type) for name, type in TYPES.items()]))
TEXTS = {
    "digits": "1" * LENGTH + "x",
    "a fraction": "1." + "1" * LENGTH + "x",
    "zeros": "0." + "0" * LENGTH + "1",
    "an exponent": "1e" + "1" * LENGTH + "x",
    "points": "." * LENGTH,
    "signs": "+" * LENGTH,
    "blanks": " " * LENGTH + "1" + " " * LENGTH + "x",
    "a time": "2026-01-31T12:00:00." + "1" * LENGTH + "x",
    "hours": "1:" * (LENGTH // 2),
    "base64": "A" * LENGTH + "=x",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_of_a_megabyte(text: str) -> None:
    bare = {"map": f'{{"k":"{text}"}}', "array": f'["1","{text}"]'}
    records = [f'{{"{name}":{bare.get(name, repr(text).replace(chr(39), chr(34)))}}}'.encode() for name in TYPES]
    assert len(READER.read(records).reasons) == len(TYPES)


@pytest.mark.parametrize("number", ["1" * LENGTH, "0." + "1" * LENGTH, "1" * LENGTH + "e-900000", "1e-99999999"])
def test_a_number_of_a_megabyte(number: str) -> None:
    bare = {"map": f'{{"k":{number}}}', "array": f"[1,{number}]"}
    records = [f'{{"{name}":{bare.get(name, number)}}}'.encode() for name in TYPES]
    assert len(READER.read(records).reasons) == len(TYPES)
