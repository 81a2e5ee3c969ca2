"""Columns that a schema declares, as DuckDB's types."""

from __future__ import annotations

import pytest

from lakestream.query.ddl import columns_of


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [
        ("id string, n LONG", {"id": "VARCHAR", "n": "BIGINT"}),
        ("`a b` int NOT NULL COMMENT 'x, y', `c``d` date", {"a b": "INTEGER", "c`d": "DATE"}),
        ("d decimal, e decimal(5), f numeric( 38 , 18 )",
         {"d": "DECIMAL(10, 0)", "e": "DECIMAL(5, 0)", "f": "DECIMAL(38, 18)"}),
        ("v varchar(20), t timestamp, u timestamp_ntz", {"v": "VARCHAR", "t": "TIMESTAMPTZ", "u": "TIMESTAMP"}),
        ("a array<struct<x:int,`y z`: map<string, array<double>>>>",
         {"a": 'STRUCT("x" INTEGER, "y z" MAP(VARCHAR, DOUBLE[]))[]'}),
        ('a int COMMENT "of \\"it\\", or b int", c int', {"a": "INTEGER", "c": "INTEGER"}),
        ("s struct<a: int NOT NULL, b: string COMMENT 'it''s'>", None),
        ("i interval", None),
        ("id", None),
        ("id string extra", None),
    ],
)  # fmt: skip
def test_types(ddl: str, columns: dict[str, str] | None) -> None:
    assert columns_of(ddl) == columns
