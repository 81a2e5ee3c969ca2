"""What the inspection of the finished lake found: passed from its process to the demo's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import orjson
from pydantic import TypeAdapter

from lakestream_demo.result import CheckResult, QueryResult, TableResult


@dataclass(frozen=True)
class Inspection:
    """Tables, audit and queries."""

    tables: tuple[TableResult, ...]
    audit: tuple[CheckResult, ...]
    queries: tuple[QueryResult, ...]
    seconds: Mapping[str, float]
    """Seconds of its parts."""

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Inspection:
        return TypeAdapter(cls).validate_json(text)
