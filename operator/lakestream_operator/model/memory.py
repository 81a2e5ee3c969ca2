"""What the operator remembers of a writer from one cycle to the next, and over its own restarts.

It is kept as an annotation of the writer's control ConfigMap. All of it can be lost at any time: then a failure is
retried sooner than it would have been, and a drain begins anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import AwareDatetime, Field

from lakestream_api.base import WireModel


class Drain(WireModel):
    """A request to a driver to stop after the batch in hand."""

    id: str
    """What the driver acknowledges."""

    pod_uid: str
    """The driver that is asked."""

    since: AwareDatetime
    """When it was asked first."""

    reason: str
    """Why, in one word."""


class Ending(WireModel):
    """How a driver ended without being asked to."""

    application_uid: str
    """The SparkApplication whose driver it was: each one is counted once."""

    fingerprint: str
    """The document that it ran."""

    at: AwareDatetime
    """When it was seen."""

    exit: int | None = None
    """The driver's exit status; none if there never was a driver, or its pod is gone."""

    reason: str = "DriverLost"
    """What kind of ending it was, in one word."""

    message: str = ""
    """What the driver, or else the Spark Operator, said, and what to do about it."""

    ran: bool = False
    """Whether it had committed a batch."""

    by_document: int = Field(default=0, ge=0)
    """Failures in a row that the document may be why of: not a node that was lost, nor an outage of the storage."""

    retry_at: AwareDatetime | None = None
    """When the writer is started again; none: only with another document."""

    over: bool = False
    """Whether a driver has committed batches since."""


class Remade(WireModel):
    """A SparkApplication that was ended since somebody had edited it."""

    application_uid: str

    at: AwareDatetime
    """When it was last wanted so."""


class Memory(WireModel):
    """What is remembered of one writer."""

    failures: int = Field(default=0, ge=0)
    """Drivers in a row that ended without being asked to."""

    ending: Ending | None = None
    """How the last of them did."""

    drain: Drain | None = None
    """The request that is being waited for."""

    podless_since: AwareDatetime | None = None
    """Since when a SparkApplication that should have a driver has none."""

    remade: Remade | None = None
    """The last one that was made anew for that: where something edits each one, that would have no end."""

    rejected: str | None = None
    """Fingerprint of a document that never got to run, and from which the writer was rolled back."""

    def by(self, now: datetime, wait: timedelta) -> Self:
        """The same, by a clock that was put back since: else what was begun would last until it is as late again.

        Args:
            now: the time.
            wait: the longest until a driver is started again.
        """
        drain, ending = self.drain, self.ending
        if drain and drain.since > now:
            drain = drain.model_copy(update={"since": now})
        if ending and (ending.at > now or (ending.retry_at and ending.retry_at > now + wait)):
            retry_at = min(ending.retry_at, now + wait) if ending.retry_at else None
            ending = ending.model_copy(update={"at": min(ending.at, now), "retry_at": retry_at})
        podless_since = min(self.podless_since, now) if self.podless_since else None
        remade = self.remade
        if remade and remade.at > now:
            remade = remade.model_copy(update={"at": now})
        update = {"drain": drain, "ending": ending, "podless_since": podless_since, "remade": remade}
        return self.model_copy(update=update)
