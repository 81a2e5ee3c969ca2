"""Rules in CEL for the CRD, which an API server checks.

They are part of the models' JSON schemas, each beside the Python that says the same to a document on a laptop.
"""

from dataclasses import dataclass
from typing import TypeAlias

from pydantic import GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema

RULES = "x-kubernetes-validations"

Rule: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True)
class Rules:
    """Rules that are added to those of a type, by annotating it, or of a field or model, as its `json_schema_extra`."""

    rules: tuple[Rule, ...]

    def __call__(self, schema: dict[str, JsonValue]) -> None:
        there = schema.get(RULES, [])
        assert isinstance(there, list)
        schema[RULES] = [*there, *self.rules]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, JsonValue]:
        schema = handler(core)
        self(schema)
        return schema


def rule(expression: str, message: str, at: str | None = None) -> Rule:
    """A CEL rule; `at` is the field below `self` at which the message is shown, as in `.minExecutors`."""
    made: Rule = {"rule": expression, "message": message}
    return made if at is None else {**made, "fieldPath": at}


def rules(*made: Rule) -> Rules:
    return Rules(made)


def fixed(message: str) -> Rules:
    """The rule of a field that cannot be changed; the message gives the reason and the way out."""
    return rules(rule("self == oldSelf", message))


def same(field: str, absent: str = "''") -> str:
    """The expression by which a field that may be absent cannot be changed; without it, it is what `absent` is."""
    here, there = (f"(has({one}.{field}) ? {one}.{field} : {absent})" for one in ("self", "oldSelf"))
    return f"{here} == {there}"


def text_schema(*made: Rule, most: int) -> dict[str, JsonValue]:
    """The JSON schema of a text with rules. What a rule costs is reckoned from the greatest length."""
    return {"type": "string", "maxLength": most, RULES: list(made)}
