"""Columns that a document's `schema` declares, as types of DuckDB. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"""\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(\w+)|(.))""", re.DOTALL)
_PLAIN = {
    "string": "VARCHAR",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "byte": "TINYINT",
    "smallint": "SMALLINT",
    "short": "SMALLINT",
    "int": "INTEGER",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "float": "FLOAT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ltz": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    # Base64 in the lines; within arrays, maps and structs it stays so.
    "binary": "VARCHAR",
}
_DECIMAL = ("decimal", "dec", "numeric")


class _UnknownError(Exception):
    """Nothing that is known here."""


def columns_of(ddl: str) -> Mapping[str, str] | None:
    """Types of DuckDB by column, of Spark's DDL; None if something in it is not known here."""
    parser = _Parser(ddl)
    try:
        columns = parser.fields()
    except _UnknownError:
        return None
    return dict(columns) if parser.at_end else None


class _Parser:
    def __init__(self, ddl: str) -> None:
        self._tokens = [str(match[match.lastindex or 0]) for match in _TOKEN.finditer(ddl.strip())]

    @property
    def at_end(self) -> bool:
        return not self._tokens

    def fields(self) -> list[tuple[str, str]]:
        found = []
        while True:
            name = self._take()
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            if self._peek() == ":":
                self._take()
            found.append((name, self._type()))
            self._options()
            if self._peek() != ",":
                return found
            self._take()

    def _options(self) -> None:
        if self._peek().lower() == "not":
            self._take()
            self._expect("null")
        if self._peek().lower() == "comment":
            self._take()
            self._take()

    def _type(self) -> str:
        name = self._take().lower()
        if name in _DECIMAL:
            return f"DECIMAL({', '.join(self._numbers() or ['10', '0'])})"
        if name in ("varchar", "char"):
            self._numbers()
        if name in _PLAIN:
            return _PLAIN[name]
        self._expect("<")
        match name:
            case "array":
                made = f"{self._type()}[]"
            case "map":
                key = self._type()
                self._expect(",")
                made = f"MAP({key}, {self._type()})"
            case "struct":
                fields = ", ".join(f"{quoted(field)} {kind}" for field, kind in self.fields())
                made = f"STRUCT({fields})"
            case _:
                raise _UnknownError
        self._expect(">")
        return made

    def _numbers(self) -> list[str]:
        if self._peek() != "(":
            return []
        self._take()
        found = []
        while (token := self._take()) != ")":
            if token != ",":
                found.append(token)
        return found if len(found) != 1 else [*found, "0"]

    def _expect(self, token: str) -> None:
        if self._take().lower() != token:
            raise _UnknownError

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self) -> str:
        if not self._tokens:
            raise _UnknownError
        return self._tokens.pop(0)


def quoted(name: str) -> str:
    """A name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"
