"""Types of DuckDB for the columns of JSON lines, so that none alters a value, but for doubles and floats. Pure.

A schema declares them as it is now, and lines may have been written while it was another one. What it does not declare
is inferred: DuckDB tells a structure of all lines, in which a whole number that no BIGINT holds is a DOUBLE, or makes
all those of its column unsigned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from lakestream.query.ddl import quoted, text

# Names of fields are passed over, which are in quotes.
_LEAF = re.compile(r'"(?:[^"]|"")*"|DECIMAL\(\d+, \d+\)|\b(?:TINYINT|SMALLINT|INTEGER|BIGINT|BOOLEAN|DATE)\b')
_TOLD_APART = re.compile(r'"(?:[^"]|"")*"|MAP\(\w+|VARCHAR|FLOAT|DOUBLE|DECIMAL\(\d+, \d+\)')
"""Types that DuckDB makes of values of other kinds, too. Keys of maps are texts in all lines."""
_WHOLE = ("UBIGINT", "BIGINT", "HUGEINT")


def _above(most: int) -> str:
    """A pattern of the digits of larger numbers."""
    digits = str(most)
    # The first that differs is larger, whatever comes behind it.
    same_length = (
        rf"{digits[:place]}[{int(digit) + 1}-9]\d{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "9"
    )
    return "|".join([rf"(?:\d{{{len(digits) + 1},}}", *same_length]) + ")"


def _long_fraction(most: int) -> str:
    """A pattern of numbers with a dot, and more digits than so many from the first to the last that is not 0."""
    return "|".join(
        [
            *(rf"[1-9]\d{{{whole - 1}}}\.\d{{{most - whole},}}[1-9]" for whole in range(1, most + 1)),
            rf"[1-9]\d{{{most},}}\.\d*[1-9]",
            rf"[1-9]\d{{{most - 1},}}[1-9]0*\.0",
            rf"0\.0*[1-9]\d{{{most - 1},}}[1-9]",
        ]
    )


_LONG_FRACTION = rf"([:,\[]\s*)-?(?:{_long_fraction(17)})[\d.eE+-]*"
"""No double has more digits, but decimals have. In a line, with what is before it."""
_MARK = "Infinity"
"""What JSON has in strings alone, and DuckDB takes for a number in its place."""
_STRINGS = r'"(?:[^"\\]|\\.)*"'
_BEYOND_BIGINT = rf"(?:^|[:,\[])-?{_above(2**63 - 1)}(?:[,\]}}]|$)"
_BEYOND_DOUBLE = rf"^-?{_above(2**53)}$"
_FRACTION = r"\d[.eE]"


def as_written(kind: str) -> str:
    """The type to read a declared column as first: with what DuckDB would round, or take for something else, left as
    it is in the lines. Decimals are doubles on the way in any case."""

    def leaf(found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return found[0]
        return "DOUBLE" if found[0].startswith("DECIMAL") else "VARCHAR"

    return _LEAF.sub(leaf, kind)


def exactly(column: str, read: str, kind: str, file: str) -> str:
    """SQL of a value that was read as it was written, as what it is declared as; an error if that is another value.

    Args:
        column: its name.
        read: SQL of what was read.
        kind: what it is declared as.
        file: SQL of the path that it came from.
    """
    written = as_written(kind)
    if written == kind:
        return f"CAST({read} AS {kind})"
    return (
        f"CASE WHEN CAST(TRY_CAST({read} AS {kind}) AS {written}) IS NOT DISTINCT FROM CAST({read} AS {written}) "
        f"THEN TRY_CAST({read} AS {kind}) ELSE {_refusal(column, read, kind, file)} END"
    )


def as_read(kind: str) -> str:
    """The type to read a declared column as: as it was written, and as JSON what is to be told from other kinds."""
    return as_written(_TOLD_APART.sub(lambda found: found[0] if found[0].startswith(('"', "MAP(")) else "JSON", kind))


def told_apart(column: str, read: str, kind: str, file: str) -> str:
    """SQL of a value that was read by `as_read`, with texts and numbers in place of their JSON; an error if a text was
    written as a number, or as something with numbers, of which digits are lost by then, or a number as something else.

    Args:
        column: its name.
        read: SQL of what was read.
        kind: what it is declared as.
        file: SQL of the path that it came from.
    """
    return _told_apart(column, read, duckdb.sqltype(kind), file) or read


def _told_apart(name: str, read: str, kind: DuckDBPyType, file: str, depth: int = 0) -> str | None:
    """See `told_apart`, of a value so many arrays and maps deep; None if nothing of it is read as JSON."""
    each = f"_lakestream_{depth}"
    match kind.id:
        case "varchar":
            return _text(name, read, file)
        case "float" | "double" | "decimal":
            return _number(name, read, kind, file)
        case "list":
            made = _told_apart(f"{name}[]", each, kind["child"], file, depth + 1)
            return made and f"list_transform({read}, lambda {each}: {made})"
        case "map":
            made = _told_apart(f"{name}[]", each, kind["value"], file, depth + 1)
            return made and f"map(map_keys({read}), list_transform(map_values({read}), lambda {each}: {made}))"
        case "struct":
            fields = {field: f"struct_extract({read}, {text(field)})" for field, _ in kind.children}
            texts = {
                field: _told_apart(f"{name}.{field}", value, kind[field], file, depth)
                for field, value in fields.items()
            }
            packed = ", ".join(f"{quoted(field)} := {texts[field] or value}" for field, value in fields.items())
            return f"CASE WHEN {read} IS NOT NULL THEN struct_pack({packed}) END" if any(texts.values()) else None
        case _:
            return None


def _text(name: str, read: str, file: str) -> str:
    said = f"CAST({read} AS VARCHAR)"
    return (
        f"CASE WHEN starts_with({said}, '\"') THEN {read}->>'$' WHEN {said} = 'null' THEN NULL "
        f"WHEN regexp_matches({_bare(said)}, {text(_FRACTION)}) THEN {_refusal(name, read, 'VARCHAR', file)} "
        f"ELSE {said} END"
    )


def _number(name: str, read: str, kind: DuckDBPyType, file: str) -> str:
    said, number = f"CAST({read} AS VARCHAR)", f"TRY_CAST({read} AS {'FLOAT' if kind.id == 'float' else 'DOUBLE'})"
    return (
        f"CASE WHEN {said} IN ('true', 'false') OR {number} IS NULL AND {said} <> 'null' "
        f"THEN {_refusal(name, read, str(kind), file)} ELSE {number} END"
    )


def _bare(said: str) -> str:
    """SQL of a text of JSON without its strings."""
    return f"regexp_replace({said}, {text(_STRINGS)}, '', 'g')"


def plain_text(read: str) -> str:
    """SQL of a text that was read as JSON, of a column that has numbers or other values as well."""
    said = f"CAST({read} AS VARCHAR)"
    return f"CASE WHEN starts_with({said}, '\"') THEN {read}->>'$' WHEN {said} <> 'null' THEN {said} END"


def _refusal(column: str, read: str, kind: str, file: str) -> str:
    says = text(
        f": column {column} is {kind} by the schema as it is now, which does not hold what was written (name other "
        "columns in --sql, or ask for later batches by --since): "
    )
    return f"error({file} || {says} || left(CAST({read} AS VARCHAR), 80))"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What there is among the numbers of a column."""

    beyond_bigint: bool = False
    """Whole ones, also within other values."""
    beyond_double: bool = False
    """Whole ones that a double may round, where the column itself is numbers."""
    fractions: bool = False
    """With a fraction or an exponent."""

    @staticmethod
    def looked_for(name: str) -> str:
        """SQL of a list of the three, over a column of JSON."""
        bare = _bare(f"CAST({quoted(name)} AS VARCHAR)")
        patterns = (_BEYOND_BIGINT, _BEYOND_DOUBLE, _FRACTION)
        return f"[{', '.join(f'bool_or(regexp_matches({bare}, {text(pattern)}))' for pattern in patterns)}]"


def may_be_rounded(structure: Any) -> bool:
    """Whether numbers with fractions may be in what `json_group_structure` says of a column."""
    return not _leaves(structure).isdisjoint(("DOUBLE", "JSON"))


def marked(objects: str) -> str:
    """SQL of the lines, as `line`, that have numbers which only decimals hold, with a mark in place of each: in what
    DuckDB takes out of a line they would be rounded already.

    Args:
        objects: SQL of all lines, as `json`.
    """
    line, pattern = "CAST(json AS VARCHAR)", text(_LONG_FRACTION)
    return (
        f"SELECT regexp_replace({line}, {pattern}, '\\1{_MARK}', 'g') AS line "
        f"FROM {objects} WHERE regexp_matches({line}, {pattern})"
    )


def has_mark(name: str) -> str:
    """SQL that says of a `line` of `marked` whether there is a mark in a column of it."""
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    return f"contains({_bare(f'CAST(json_extract(line, {text(pointer)}) AS VARCHAR)')}, {text(_MARK)})"


def has_numbers(structure: Any) -> bool:
    """Whether there are any in what `json_group_structure` says of a column."""
    return not _leaves(structure).isdisjoint(("DOUBLE", *_WHOLE))


def inferred(structure: Any, numbers: Numbers) -> str | None:
    """The type for what `json_group_structure` says of a column; None if there is none that holds its numbers.

    Args:
        structure: of the column.
        numbers: that are in it.
    """
    if structure == "JSON":
        return "JSON"  # of which whoever reads it makes a text
    # Spark knows no unsigned one, whose differences would be errors below 0.
    whole = "HUGEINT" if numbers.beyond_bigint else "BIGINT"
    if "DOUBLE" not in _leaves(structure):
        return _type_of(structure, dict.fromkeys(_WHOLE, whole))
    if not numbers.fractions:
        return _type_of(structure, dict.fromkeys(("DOUBLE", *_WHOLE), whole))
    if numbers.beyond_bigint or numbers.beyond_double:
        return None
    return _type_of(structure, dict.fromkeys(_WHOLE, whole))


def same_names(names: Iterable[str]) -> list[list[str]]:
    """Names that differ by case alone, which are one to SQL."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[name.lower()].append(name)
    return [found for found in alike.values() if len(found) > 1]


def _leaves(structure: Any) -> set[str]:
    match structure:
        case dict():
            return set[str]().union(*map(_leaves, structure.values()))
        case [element]:
            return _leaves(element)
        case _:
            return {str(structure)}


def _type_of(structure: Any, numbers: Mapping[str, str]) -> str:
    match structure:
        case dict() if "" in structure or same_names(structure):
            return "JSON"  # as of a map that Spark has written
        case dict():
            return (
                f"STRUCT({', '.join(f'{quoted(name)} {_type_of(kind, numbers)}' for name, kind in structure.items())})"
            )
        case [element]:
            return f"{_type_of(element, numbers)}[]"
        case "NULL" | "JSON":  # of values of several kinds; as JSON, texts would have their quotes
            return "VARCHAR"
        case _:
            return numbers.get(structure, str(structure))
