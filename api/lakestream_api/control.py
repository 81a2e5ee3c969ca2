"""What the operator asks of a running driver, in its control ConfigMap."""

from pydantic import Field

from lakestream_api.base import WireModel


class Control(WireModel):
    """Orders to a driver. They describe what should be, so reading them twice changes nothing."""

    executors: int | None = Field(default=None, ge=1)
    """Executors to have; none: as many as the driver began with."""

    shards: int | None = Field(default=None, ge=1)
    """Open shards that the stream should have; none: they are not the driver's business."""

    drain: str | None = None
    """Name of a request to stop: the driver ends after the batch in hand, and repeats the name in
    its report."""
