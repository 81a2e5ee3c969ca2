"""What records become: fixed with the batch, so that whoever repeats it makes the same rows of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

import orjson

from lakestream.errors import InvalidValueError

RULES = 8
"""Version of the rules in our own code (and in Spark), from a record's bytes to its row, its rescued fields or its
quarantine. Raise it with every change that makes another row, or none, of some record;
`test_rows_change_only_with_the_rules` finds out."""


class RecordFormat(StrEnum):
    """What the bytes of a record are."""

    JSON = "json"
    """Of an object."""
    JSONL = "jsonl"
    """Of objects, one after the other, each of which is an event."""
    TEXT = "text"
    AVRO = "avro"
    """Of a value, in a frame of the Glue Schema Registry."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What a record has to have at one place to be taken."""

    steps: tuple[str, ...]
    """Names, from the outside in."""
    values: frozenset[str]
    """What may be there: texts, and numbers and booleans as they are written."""

    def to_row(self) -> list[Any]:
        return [list(self.steps), sorted(self.values)]

    @classmethod
    def from_row(cls, row: list[Any]) -> Filter:
        steps, values = row
        return cls(tuple(steps), frozenset(values))


@dataclass(frozen=True, slots=True)
class Definition:
    """All that decides which row a record becomes, or that it is quarantined.

    A plan bears the definition it was made under, and is carried out by it: part of the batch may be in the sink or in
    quarantine already. It is in the plan's own object and not beside it, so that one is never there without the other;
    after compression it is some hundred bytes.

    Key, ordering field and partitioning decide as well, but belong to the checkpoint's identity. What may be changed to
    let a batch pass is left out on purpose: `quarantine.maxFraction`, `onDataLoss`.
    """

    schema: str
    """`spec.schema`."""
    transform: str | None
    """`spec.transform`."""
    delete_when: str | None
    """The writer's `hudi.deleteWhen`."""
    rules: int = RULES
    compression: str | None = None
    """The writer's `json.compression`, which decides the names of the files that a batch is written to, and not its
    rows; None: of another sink, or of a release that did not keep it."""

    filters: tuple[Filter, ...] = ()
    """`spec.filter`, all of which a record has to meet."""
    record_format: RecordFormat = RecordFormat.JSON
    """`spec.format`."""

    def __post_init__(self) -> None:
        if self.rules < 1:
            raise InvalidValueError(f"rules are numbered from 1, got {self.rules}")

    def differences(self, other: Definition) -> str:
        """What another definition has changed, in the document's words."""
        changed = {
            "spec.filter": self.filters != other.filters,
            "spec.format": self.record_format != other.record_format,
            "spec.schema": self.schema != other.schema,
            "spec.transform": self.transform != other.transform,
            "hudi.deleteWhen": self.delete_when != other.delete_when,
            "json.compression": self.compression != other.compression,
            "the release": self.rules != other.rules,
        }
        return ", ".join(name for name, differs in changed.items() if differs)

    def differs_in_document(self, other: Definition) -> bool:
        """Whether other rows are made by another document, and not by another release alone."""
        return replace(self, rules=other.rules).digest != other.digest

    @property
    def digest(self) -> str:
        """Tells apart what rows are made by: of equal ones it is equal, in any release."""
        return sha256(orjson.dumps(self._of_rows(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    @property
    def rejects_as(self) -> str:
        """The digest, where the same would be rejected by it again; empty: nobody knows. Records in Avro may be read
        once somebody has registered their schema, with nothing changed here."""
        return "" if self.record_format is RecordFormat.AVRO else self.digest

    def to_fields(self) -> dict[str, Any]:
        return self._of_rows() | ({} if self.compression is None else {"compression": self.compression})

    def _of_rows(self) -> dict[str, Any]:
        return {
            "schema": self.schema,
            "transform": self.transform,
            "deleteWhen": self.delete_when,
            "rules": self.rules,
            **({"filter": [one.to_row() for one in self.filters]} if self.filters else {}),
            **({} if self.record_format is RecordFormat.JSON else {"format": self.record_format.value}),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Definition:
        row = (fields["schema"], fields["transform"], fields["deleteWhen"], fields["rules"])
        filters = tuple(map(Filter.from_row, fields.get("filter", ())))
        return cls(*row, fields.get("compression"), filters, RecordFormat(fields.get("format", RecordFormat.JSON)))
