"""Reading a request's fields: types and constraints as the Kinesis API states them.

A wrong type is a SerializationException at once. Violated constraints are collected and reported together by
`check`, with Kinesis's wording; until then, a placeholder stands for a value that is not valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lakestream_localkinesis.core.hashing import KEY_SPACE
from lakestream_localkinesis.errors import (
    AccessDeniedException,
    ApiError,
    InvalidArgumentException,
    ResourceNotFoundException,
    SerializationException,
    ValidationException,
)

if TYPE_CHECKING:
    from lakestream_localkinesis.core.account import Account

TAG_KEY_LENGTH = 128
TAG_VALUE_LENGTH = 256
MOST_TAGS = 200
"""In a request; a stream has fewer."""
MOST_SECONDS = 2**63 // 1000 - 1
"""Milliseconds are a Java long."""
_UNEXPECTED_LIST = "Start of list found where not expected"
_UNEXPECTED_MAP = "Start of structure or map found where not expected."
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Text:
    """Constraints of a string."""

    pattern: str | None = None
    shortest: int = 0
    longest: int | None = None
    choices: tuple[str, ...] = ()

    def violations(self, value: str) -> list[str]:
        """What the value violates, in Kinesis's words."""
        found = []
        if self.pattern and not re.fullmatch(self.pattern, value, re.ASCII):
            found.append(f"Member must satisfy regular expression pattern: {self.pattern}")
        if len(value) < self.shortest:
            found.append(f"Member must have length greater than or equal to {self.shortest}")
        if self.longest is not None and len(value) > self.longest:
            found.append(f"Member must have length less than or equal to {self.longest}")
        if self.choices and value not in self.choices:
            found.append(f"Member must satisfy enum value set: [{', '.join(self.choices)}]")
        return found


STREAM_NAME = Text("[a-zA-Z0-9_.-]+", 1, 128)
STREAM_ARN = Text(r"arn:aws.*:kinesis:.*:\d{12}:stream/\S+", 1, 2048)
SHARD_ID = Text("[a-zA-Z0-9_.-]+", 1, 128)
SEQUENCE_NUMBER = Text(r"0|([1-9]\d{0,128})")
HASH_KEY = Text(r"0|([1-9]\d{0,38})")


class Fields:
    """The fields of one request."""

    def __init__(self, values: dict[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path
        self._violations: list[str] = []
        self._refusals: list[ApiError] = []

    def names(self) -> set[str]:
        """The fields that are given."""
        return {name for name, value in self.values.items() if value is not None}

    def check(self) -> None:
        """Raise what was found wrong so far."""
        if self._violations:
            raise ValidationException.of(self._violations)
        for refusal in self._refusals:
            raise refusal

    def text(self, name: str, rule: Text) -> str:
        """A required string."""
        value = self.optional_text(name, rule)
        return self._missing(name, "") if value is None else value

    def optional_text(self, name: str, rule: Text) -> str | None:
        """A string, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise _wrong_type(value, "String")
        for violation in rule.violations(value):
            self._violate(name, f"'{value}'", violation)
        return value

    def integer(self, name: str, least: int = 1, most: int | None = None) -> int:
        """A required integer."""
        value = self.optional_integer(name, least, most)
        return self._missing(name, least) if value is None else value

    def optional_integer(self, name: str, least: int = 1, most: int | None = None) -> int | None:
        """An integer, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type(value, "Integer")
        number = int(value)
        if number < least:
            self._violate(name, f"'{number}'", f"Member must have value greater than or equal to {least}")
        if most is not None and number > most:
            self._violate(name, f"'{number}'", f"Member must have value less than or equal to {most}")
        return number

    def boolean(self, name: str) -> bool:
        """A boolean, false if absent."""
        value = self.values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise _wrong_type(value, "Boolean")
        return value

    def timestamp_ms(self, name: str) -> int | None:
        """A time in milliseconds since the epoch (seconds on the wire), or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SerializationException(f"{_java_class(value)} can not be converted to milliseconds since epoch")
        if abs(value) > MOST_SECONDS:
            raise SerializationException(f"{value} can not be converted to milliseconds since epoch")
        return round(value * 1000)

    def required_structure(self, name: str) -> Fields:
        """A structure; one that is missing is empty until `check`."""
        found = self.structure(name)
        return Fields(self._missing(name, {})) if found is None else found

    def structure(self, name: str) -> Fields | None:
        """A structure, or None; its violations are reported with this one's."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise SerializationException("Expected null" if not isinstance(value, list) else _UNEXPECTED_LIST)
        inner = Fields(value, f"{self._path}{_lower_first(name)}.")
        inner._violations = self._violations
        return inner

    def items(self, name: str, most: int) -> list[Any]:
        """A required list of 1 to `most` members."""
        value = self.values.get(name)
        if value is None:
            return self._missing(name, [])
        if not isinstance(value, list):
            raise SerializationException(_UNEXPECTED_MAP if isinstance(value, dict) else "Expected list or null")
        self._check_length(name, "'[...]'" if value else "'[]'", len(value), most)
        return value

    def texts(self, name: str, most: int, shortest: int, longest: int) -> list[str]:
        """A required list of 1 to `most` strings of these lengths."""
        value = self.items(name, most)
        if not all(isinstance(member, str) for member in value):
            raise SerializationException(f"{name}: a value that is not text can not be converted to an String")
        if not all(shortest <= len(member) <= longest for member in value):
            shown = f"'[{', '.join(value)}]'"
            self._violate(name, shown, f"Member must satisfy constraint: {_lengths(shortest, longest)}")
        return value

    def required_tags(self, name: str) -> dict[str, str]:
        """A map of tags."""
        value = self.tags(name)
        return self._missing(name, {}) if value is None else value

    def tags(self, name: str) -> dict[str, str] | None:
        """A map of tags, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise SerializationException("Expected map or null")
        for tag in value.values():
            if not isinstance(tag, str):
                raise _wrong_type(tag, "String")
        shown = f"'{{{', '.join(f'{key}={tag}' for key, tag in value.items())}}}'"
        self._check_length(name, shown, len(value), MOST_TAGS)
        if not all(1 <= len(key) <= TAG_KEY_LENGTH for key in value):
            self._violate(name, shown, f"Map keys must satisfy constraint: {_lengths(1, TAG_KEY_LENGTH)}")
        if not all(len(tag) <= TAG_VALUE_LENGTH for tag in value.values()):
            self._violate(name, shown, f"Map value must satisfy constraint: {_lengths(0, TAG_VALUE_LENGTH)}")
        return value

    def stream_name(self, account: Account) -> str:
        """The stream that StreamName or StreamARN says."""
        name = self.optional_text("StreamName", STREAM_NAME)
        named = self.stream_of_arn(account)
        if named is None:
            return self._missing("StreamName", "") if name is None else name
        if name not in (None, named):
            arn = self.values["StreamARN"]
            self.refuse(InvalidArgumentException(f"StreamName {name} and StreamARN {arn} refer to different streams."))
        return named

    def required_stream_of_arn(self, account: Account) -> str:
        """The stream that StreamARN says, in operations that take no StreamName."""
        named = self.stream_of_arn(account)
        return self._missing("StreamARN", "") if named is None else named

    def stream_of_arn(self, account: Account) -> str | None:
        """The stream that StreamARN says, or None."""
        resource = self.resource("StreamARN", STREAM_ARN, account)
        return None if resource is None else resource.removeprefix("stream/")

    def resource(self, name: str, rule: Text, account: Account) -> str | None:
        """What an ARN names in the account, or None. Another account's is refused."""
        arn = self.optional_text(name, rule)
        if arn is None:
            return None
        _, _, _, region, owner, named = [*arn.split(":", 5), "", "", "", "", ""][:6]
        if owner != account.settings.id:
            self.refuse(
                AccessDeniedException(
                    f"{arn} belongs to another account than {account.settings.id}, and no resource-based policy "
                    "allows access to it."
                )
            )
        elif region != account.settings.region:
            self.refuse(ResourceNotFoundException(f"{arn} is not in {account.settings.region}."))
        return named

    def refuse(self, error: ApiError) -> None:
        """Let `check` raise this, if no constraint is violated: constraints come first."""
        self._refusals.append(error)

    def _check_length(self, name: str, shown: str, length: int, most: int) -> None:
        if length < 1:
            self._violate(name, shown, "Member must have length greater than or equal to 1")
        if length > most:
            self._violate(name, shown, f"Member must have length less than or equal to {most}")

    def _missing(self, name: str, placeholder: _T) -> _T:
        self._violate(name, "null", "Member must not be null")
        return placeholder

    def _violate(self, name: str, shown: str, constraint: str) -> None:
        member = f"{self._path}{_lower_first(name)}"
        self._violations.append(violation(shown, member, constraint))


def violation(shown: str, member: str, constraint: str) -> str:
    """What a value violates, in Kinesis's words."""
    return f"Value {shown} at '{member}' failed to satisfy constraint: {constraint}"


def read_hash_key(name: str, value: object, path: str = "") -> int:
    """A hash key given as decimal text; `path` is where its structure stands in the request."""
    if not isinstance(value, str):
        raise _wrong_type(value, "String")
    if not re.fullmatch(HASH_KEY.pattern or "", value, re.ASCII):
        constraint = f"Member must satisfy regular expression pattern: {HASH_KEY.pattern}"
        raise ValidationException.of([violation(f"'{value}'", f"{path}{_lower_first(name)}", constraint)])
    key = int(value)
    if key >= KEY_SPACE:
        raise InvalidArgumentException(
            f"Invalid {name}. {name} must be in the range: [0, 2^128-1]. Specified value was {value}"
        )
    return key


def _wrong_type(value: object, wanted: str) -> SerializationException:
    if isinstance(value, list):
        return SerializationException(_UNEXPECTED_LIST)
    if isinstance(value, dict):
        return SerializationException(_UNEXPECTED_MAP)
    return SerializationException(f"{_java_class(value)} can not be converted to an {wanted}")


def _java_class(value: object) -> str:
    # Kinesis names the classes of its own parser.
    match value:
        case bool():
            return "class java.lang.Boolean"
        case str():
            return "class java.lang.String"
        case _:
            return "class com.amazon.coral.value.json.numbers.TruncatingBigNumber"


def _lengths(shortest: int, longest: int) -> str:
    return (
        f"[Member must have length less than or equal to {longest}, "
        f"Member must have length greater than or equal to {shortest}]"
    )


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]
