"""Which records of a stream are taken, where it has several kinds of them."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from lakestream_api.base import ApiModel, problem_at
from lakestream_api.cel import rule, text_schema

_STEP = r"([^.`]+|`[^`]+`)"
_PATH = re.compile(rf"{_STEP}(\.{_STEP})*")
_PATH_RULE = (
    "name the fields from the outside in, as in metadata.table-name; one with a dot in its name is in backticks"
)
MOST_FILTERS = 8
_MOST_VALUES = 256
_LONGEST = 256
"""Characters of a path, and of a value."""


def _path(path: str) -> str:
    if _PATH.fullmatch(path) is None:
        raise ValueError(f"{path!r} is no path; {_PATH_RULE}")
    return path


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} is listed twice; list it once")
    return values


FieldPath = Annotated[
    str,
    AfterValidator(_path),
    Field(max_length=_LONGEST),
    WithJsonSchema(text_schema(rule(f"self.matches(r'^{_PATH.pattern}$')", _PATH_RULE), most=_LONGEST)),
]


class Filter(ApiModel):
    """What a record has to have at one place."""

    path: FieldPath
    """The field, by its names from the outside in, as in `metadata.table-name`. A name with a dot in it is in
    backticks."""

    values: Annotated[
        tuple[Annotated[str, Field(max_length=_LONGEST)], ...],
        Field(min_length=1, max_length=_MOST_VALUES),
        AfterValidator(_distinct),
    ] = Field(json_schema_extra={"x-kubernetes-list-type": "set"})
    """What may be there: a text, or in quotes a number or boolean as the record has it written (`'1.10'`, `'true'`)."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the path."""
        return tuple(step.strip("`") for step in re.findall(_STEP, self.path))


def require_apart(filters: Sequence[Filter]) -> None:
    """Raises the problem of two filters for one field, or for one within the other."""
    for index, one in enumerate(filters):
        for other in filters[:index]:
            shorter = min(len(one.steps), len(other.steps))
            if one.steps[:shorter] == other.steps[:shorter]:
                why = (
                    "is there already; give all its values there"
                    if one.steps == other.steps
                    else f"and {other.path!r} are one within the other, and no record has values at both; keep one"
                )
                raise problem_at(f"filter[{index}].path", f"{one.path!r} {why}")
