"""Durations ("10s", "1h30m") and sizes ("256Mi") as people write them in Kubernetes."""

import json
import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from lakestream_api.cel import RULES, rule, rules, text_schema

_DURATION = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})s)?(?:(\d{1,15})ms)?", re.ASCII)
_DURATION_CEL = "^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,12}s)?([0-9]{1,15}ms)?$"
_DURATION_LENGTH = 32
_SIZE = re.compile(r"(\d{1,18})(Ki|Mi|Gi|Ti)?", re.ASCII)
_SIZE_CEL = "^[0-9]{1,18}(Ki|Mi|Gi|Ti)?$"
_UNITS = {"Ti": 1 << 40, "Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}
_MEMORY = re.compile(r"(\d{1,6})([mg])", re.ASCII)
_MEMORY_CEL = "[0-9]{1,6}[mg]"
_CPU = re.compile(r"\d{1,4}(\.\d{1,3})?|\d{1,7}m", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as "500ms", "10s", "5m" or "1h30m".

    Raises:
        ValueError: the text is not a duration; the message says what one looks like.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError(
            f"{text!r} is not a duration; write hours, minutes, seconds and milliseconds"
            ' as in "500ms", "10s", "5m" or "1h30m"'
        )
    hours, minutes, seconds, millis = (int(part or 0) for part in match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis)


def format_duration(value: timedelta) -> str:
    """Write a duration the shortest way that `parse_duration` reads back as the same."""
    seconds, millis = divmod(value // timedelta(milliseconds=1), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def parse_size(text: str) -> int:
    """Read a number of bytes such as "1048576", "64Ki" or "256Mi".

    Raises:
        ValueError: the text is not a size; the message says what one looks like.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f'{text!r} is not a size; write bytes with a unit of Ki, Mi, Gi or Ti as in "64Ki" or "256Mi"')
    number, unit = match.groups()
    return int(number) * _UNITS.get(unit, 1)


def format_size(value: int) -> str:
    """Write a number of bytes with the largest unit that divides it."""
    for unit, factor in _UNITS.items():
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)


def rounded_size(value: int) -> str:
    """Write a number of bytes for people, in the largest unit of which there is one: "1.5 GiB"."""
    for unit, factor in _UNITS.items():
        if value >= factor:
            return f"{value / factor:.1f} {unit}B"
    return f"{value} B"


def memory_mebibytes(memory: str) -> int:
    """MiB of a memory setting in the JVM's notation: "512m" is 512, "2g" is 2048.

    Raises:
        ValueError: the text is not in that notation.
    """
    match = _MEMORY.fullmatch(memory)
    if match is None:
        raise ValueError(f'{memory!r} is not a memory size; write it as the JVM does, as in "512m" or "2g"')
    number, unit = match.groups()
    return int(number) * (1024 if unit == "g" else 1)


def _given(value: object) -> str:
    """What is not even a text, as a document has it."""
    return json.dumps(value, default=repr)


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        if value < timedelta(0) or value % timedelta(milliseconds=1):
            raise ValueError(f"{value} is not a whole, non-negative number of milliseconds")
        return value
    if isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f'{_given(value)} has no unit; write a duration as in "10s" or "1h30m"')


def _positive(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("is 0s; give a time above zero")
    return value


def _size(value: object) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f'{_given(value)} is not a size; write bytes with a unit as in "64Ki" or "256Mi"')


def _jvm_memory(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'{_given(value)} has no unit; write memory as the JVM does, as in "2g"')
    memory_mebibytes(value)
    return value


def _heap(value: object) -> str:
    memory = _jvm_memory(value)
    # Spark refuses a heap below 1.5 times its reserved 300 MiB.
    if memory_mebibytes(memory) < 512:
        raise ValueError(f"{value!r} is too little for Spark; give at least 512m")
    return memory


def _cpu(text: str) -> str:
    if _CPU.fullmatch(text) is None or not text.strip("0.m"):
        raise ValueError(f'{text!r} is not an amount of CPU; write it as in "500m", "2" or "1.5"')
    return text


def cpu_millis(text: str) -> int:
    """Thousandths of a CPU: "500m" is 500, "1.5" is 1500."""
    return int(text[:-1]) if text.endswith("m") else round(float(text) * 1000)


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        text_schema(
            rule(
                f"self != '' && self.matches('{_DURATION_CEL}')",
                "write hours, minutes, seconds and milliseconds as in 500ms, 10s, 5m or 1h30m",
            ),
            most=_DURATION_LENGTH,
        )
    ),
]
"""A length of time, kept as a timedelta of whole milliseconds."""

PositiveDuration = Annotated[
    Duration,
    AfterValidator(_positive),
    rules(rule("self.matches('[1-9]')", "give a time above zero")),
]
"""A length of time above zero."""

Hours = Annotated[float, PlainSerializer(lambda hours: int(hours) if hours == int(hours) else hours)]
"""A number of hours; a whole one is written as it was given, `24` and not `24.0`."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 32,
            "x-kubernetes-int-or-string": True,
            RULES: [
                rule(
                    f"type(self) == int ? self >= 0 : self.matches('{_SIZE_CEL}')",
                    "write bytes, with a unit of Ki, Mi, Gi or Ti as in 64Ki or 256Mi",
                )
            ],
        }
    ),
]
"""A number of bytes, kept as an int."""

_MEMORY_RULE = rule(
    f"self.matches('^{_MEMORY_CEL}$')", "write memory as the JVM does, as in 512m or 2g (m is MiB, g is GiB)"
)

Memory = Annotated[str, BeforeValidator(_jvm_memory), WithJsonSchema(text_schema(_MEMORY_RULE, most=16))]
"""Memory of a JVM, kept in the JVM's own notation because Spark takes it as it is."""

Heap = Annotated[
    str,
    BeforeValidator(_heap),
    WithJsonSchema(
        text_schema(
            _MEMORY_RULE,
            rule(
                f"!self.matches('^{_MEMORY_CEL}$') || int(self.substring(0, self.size() - 1))"
                " >= (self.endsWith('g') ? 1 : 512)",
                "is too little for Spark; give at least 512m",
            ),
            most=16,
        )
    ),
]
"""Memory of a JVM that Spark can start with."""

Cpu = Annotated[
    str,
    AfterValidator(_cpu),
    WithJsonSchema(
        text_schema(
            rule(
                r"self.matches(r'^([0-9]{1,4}(\.[0-9]{1,3})?|[0-9]{1,7}m)$') && self.matches('[1-9]')",
                "write CPU as in 500m, 2 or 1.5",
            ),
            most=16,
        )
    ),
]
"""CPU as Kubernetes writes it: cores, or thousandths of one with `m`."""
