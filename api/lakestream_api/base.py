"""What all models of this package share."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class ApiModel(BaseModel):
    """A part of the resource: immutable, camelCase in documents, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )


class WireModel(ApiModel):
    """A part of what operator and driver tell each other. Unknown fields are passed over: either
    may be newer than the other, since the two are upgraded one after the other."""

    model_config = ConfigDict(extra="ignore")


def problem_at(field: str, message: str) -> PydanticCustomError:
    """The error of a rule over several fields, to be shown at `field` (a path below the model)."""
    return PydanticCustomError("lakestream", "{message}", {"message": message, "field": field})
