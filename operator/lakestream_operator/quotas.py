"""Whether a ResourceQuota forbids the executors that are called for. Pure.

A pod that a quota refuses never comes to be: no event tells of it, and no pod waits. Spark's driver asks again and
again, and says so in its log alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from lakestream_operator.model import Manifest, WriterSeen

_FACTORS = {"m": Decimal("0.001"), "k": Decimal(10) ** 3, "": Decimal(1)} | {
    unit + binary: (Decimal(1024) if binary else Decimal(1000)) ** power
    for power, unit in enumerate(("K", "M", "G", "T", "P", "E"), start=1)
    for binary in ("", "i")
}
_SCOPES = {"NotTerminating", "NotBestEffort"}
"""Executors are of these; a quota of another scope does not count them."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota that counts executors."""

    name: str
    hard: Mapping[str, Decimal]
    used: Mapping[str, Decimal]


def quotas_of(manifests: Iterable[Manifest]) -> tuple[Quota, ...]:
    """The quotas of a namespace, as far as they count executors."""
    found = []
    for manifest in manifests:
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        if set(spec.get("scopes") or ()) <= _SCOPES and not spec.get("scopeSelector"):
            name = manifest["metadata"]["name"]
            found.append(Quota(name, _quantities(status.get("hard")), _quantities(status.get("used"))))
    return tuple(found)


def is_short(seen: WriterSeen) -> bool:
    """Whether a driver that runs has fewer executors than it should, and none that waits for a node, or has yet to tell
    the driver that it is there."""
    report, pod, control = seen.own_report, seen.driver_pod, seen.control
    if report is None or pod is None or pod.ended or control is None:
        return False
    there = max(report.executors.registered, seen.executor_pods)
    return seen.pending_since is None and there < (control.executors or 0)


def in_the_way(quotas: Iterable[Quota], needs: Mapping[str, str]) -> str:
    """Which quotas leave no room for one more pod, as text; empty: none.

    Args:
        quotas: of the namespace.
        needs: what a pod asks for, by the names that quotas have, as Kubernetes's quantities.
    """
    told = [
        f"ResourceQuota {quota.name} leaves no room for one more: {name} of {_text(quota.used.get(name))} is used of "
        f"{_text(hard)}, and an executor needs {needs[name]}"
        for quota in quotas
        for name, hard in quota.hard.items()
        if name in needs and quota.used.get(name, Decimal()) + (_quantity(needs[name]) or Decimal()) > hard
    ]
    return "; ".join(told)


def _quantities(given: Mapping[str, str] | None) -> dict[str, Decimal]:
    read = {name: _quantity(str(text)) for name, text in (given or {}).items()}
    return {name: value for name, value in read.items() if value is not None}


def _quantity(text: str) -> Decimal | None:
    """A Kubernetes quantity (`500m`, `2`, `1Gi`, `1e3`); none: it is not one."""
    suffix = next((one for one in sorted(_FACTORS, key=len, reverse=True) if one and text.endswith(one)), "")
    try:
        return Decimal(text.removesuffix(suffix)) * _FACTORS[suffix]
    except InvalidOperation:
        return None


def _text(value: Decimal | None) -> str:
    return f"{(value or Decimal()).normalize():f}"
