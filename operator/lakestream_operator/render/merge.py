"""Strategic merge of pod templates, as the API server and `kubectl patch` do it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_KEYS = {
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""What entries of a pod's lists are told apart by (patchMergeKey in Kubernetes's API); others are replaced whole."""


def merged(base: Any, patch: Any, field: str = "") -> Any:
    """A value with a patch merged into it; null takes a field away.

    Args:
        base: what there is.
        patch: what is given for it.
        field: its name.
    """
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        kept = {name: value for name, value in base.items() if name not in patch}
        given = {name: merged(base.get(name), value, name) for name, value in patch.items() if value is not None}
        return {name: (kept | given)[name] for name in [*base, *patch] if name in kept or name in given}
    if isinstance(base, Sequence) and isinstance(patch, Sequence) and field in _KEYS and not isinstance(patch, str):
        return _by_key(base, patch, _KEYS[field], _OF_ONE_SOURCE.get(field, merged))
    return patch


def _by_key(base: Sequence[Any], patch: Sequence[Any], key: str, both: Callable[[Any, Any], Any]) -> list[Any]:
    given = {one.get(key): one for one in patch}
    there = {one.get(key) for one in base}
    kept = [both(one, given[one.get(key)]) if one.get(key) in given else one for one in base]
    return kept + [one for one in patch if one.get(key) not in there]


def _variable(base: Any, patch: Any) -> Any:
    """A variable with its value from elsewhere is another one: no pod may have it from two places at once."""
    return merged(base if _sources(patch) <= _sources(base) else {}, patch)


def _volume(base: Any, patch: Any) -> Any:
    """A volume of another kind takes the place of the one of its name: likewise."""
    return merged(base if patch.keys() <= base.keys() else {}, patch)


_OF_ONE_SOURCE = {"env": _variable, "volumes": _volume}


def _sources(variable: Mapping[str, Any]) -> set[str]:
    given = {"value": variable.get("value"), **(variable.get("valueFrom") or {})}
    return {name for name, value in given.items() if value is not None}
