"""Defaults that fields had in earlier releases. Pure.

The API server writes defaults into a LakeStream when it is made, so that it keeps those of its time. Its drivers'
documents leave out what is a default, and so would say something else, and restart every driver, once the default is
another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMER_DEFAULTS: Mapping[tuple[str, ...], Any] = {}
"""By the path of a field whose default was changed: the one that it had when the field was new, as in
`("spec", "trigger", "interval"): "10s"`. `*` is each entry of a list; a part that may be missing altogether ends with
`?`. Documents always have these fields, and one that does not means the value here."""


def value_at(said: Any, path: tuple[str, ...]) -> Any:
    """The value of a field, of a list's first entry; None: there is none."""
    for key in path:
        said = said[0] if key == "*" else said.get(key.removesuffix("?"))
        if said is None:
            return None
    return said


def completed(said: Any, path: tuple[str, ...], value: Any) -> Any:
    """What is said, with a value for a field that it leaves out."""
    key, *below = path
    if key == "*":
        return [completed(one, tuple(below), value) for one in said]
    name = key.removesuffix("?")
    if value is None or (name not in said and name != key):
        return said
    if not below:
        return {name: value, **said}
    return {**said, name: completed(said.get(name, {}), tuple(below), value)}


def without(said: Any, path: tuple[str, ...], value: Any) -> Any:
    """What is said, without a field if that has just this value, and without what is empty then."""
    key, *below = path
    if key == "*":
        return [without(one, tuple(below), value) for one in said]
    name = key.removesuffix("?")
    if name not in said:
        return said
    left = without(said[name], tuple(below), value) if below else {} if said[name] == value else said[name]
    rest = {field: one for field, one in said.items() if field != name}
    return rest if left == {} else {**rest, name: left}
