"""What a decision wants done in the cluster, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Manifest = Mapping[str, Any]
"""An object as the API server takes and gives it."""


@dataclass(frozen=True, slots=True)
class Resource:
    """How the API server calls a kind."""

    api_version: str
    plural: str

    @property
    def prefix(self) -> str:
        """Beginning of the kind's URLs: the core group has another one than all others."""
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"


class Kind(Enum):
    """The kinds that the operator reads or writes; the name is Kubernetes's own."""

    LakeStream = Resource("lakestream.dev/v1alpha1", "lakestreams")
    SparkApplication = Resource("sparkoperator.k8s.io/v1beta2", "sparkapplications")
    ConfigMap = Resource("v1", "configmaps")
    ServiceAccount = Resource("v1", "serviceaccounts")
    RoleBinding = Resource("rbac.authorization.k8s.io/v1", "rolebindings")
    Pod = Resource("v1", "pods")
    Event = Resource("v1", "events")
    ResourceQuota = Resource("v1", "resourcequotas")
    Lease = Resource("coordination.k8s.io/v1", "leases")

    @property
    def api_version(self) -> str:
        return self.value.api_version


@dataclass(frozen=True, slots=True)
class Reference:
    """One object, by its names."""

    kind: Kind
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Manifest) -> Reference:
        metadata = manifest["metadata"]
        return cls(Kind[manifest["kind"]], metadata["namespace"], metadata["name"])

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply: make the fields of the manifest so, leave all others alone. An object of the name that does
    not bear the LakeStream's labels is another's, and is not touched."""

    manifest: Manifest
    uid: str = ""
    """Of the object as it was seen; empty: there was none."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create, but never change: one that exists already is left as it is.

    SparkApplications are made so. Any change of their spec would end the running driver at once.
    """

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete just the object with this uid: not one that took its name since it was seen."""

    reference: Reference
    uid: str


@dataclass(frozen=True, slots=True)
class Finalize:
    """Put the operator's finalizer on the LakeStream, or take it off."""

    present: bool


@dataclass(frozen=True, slots=True)
class Emit:
    """A Kubernetes event about the LakeStream."""

    reason: str
    message: str
    warning: bool = False


Action = Apply | Create | Delete | Finalize | Emit
