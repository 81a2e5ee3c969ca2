"""What is remembered from one decision to the next, across restarts of the operator: as JSON in an annotation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError


class Remembered:
    """Base of dataclasses whose fields all have defaults: only what differs from these is written."""

    __slots__ = ()

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)
    """Also of the dataclasses within: with what is no number every decision would fail."""

    def to_json(self) -> str:
        """For the annotation that keeps it."""
        return _adapter(type(self)).dump_json(self, exclude_defaults=True).decode()

    @classmethod
    def from_json(cls, text: str | None) -> Self:
        """What `to_json` wrote. A new state if there is none, or it is nonsense: the autoscaler learns again."""
        if text is None:
            return cls()
        try:
            known: Self = _adapter(cls).validate_json(text)
        except ValidationError:
            return cls()
        return known


_adapters: dict[type[Remembered], TypeAdapter[Any]] = {}


def _adapter(kind: type[Remembered]) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
