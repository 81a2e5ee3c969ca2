"""What the resource is called, and what is attached to it."""

from typing import Annotated

from pydantic import AfterValidator, Field

from lakestream_api.base import ApiModel
from lakestream_api.fields import Namespace, StreamName, valid_annotations, valid_labels


class Metadata(ApiModel):
    """The resource's name and what is attached to it, as in any Kubernetes object."""

    name: StreamName
    """Name of the LakeStream: at most 30 lower-case letters, digits and `-`, beginning with a
    letter, so that the names of its pods fit a DNS label."""

    namespace: Namespace | None = None
    """Kubernetes namespace; not used on a laptop."""

    labels: Annotated[dict[str, str], AfterValidator(valid_labels)] = Field(default_factory=dict)
    """Labels, as in any Kubernetes object."""

    annotations: Annotated[dict[str, str], AfterValidator(valid_annotations)] = Field(default_factory=dict)
    """Annotations, as in any Kubernetes object."""

    @property
    def full_name(self) -> str:
        """Namespace and name; on a laptop the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
