"""What is so of one writer, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from lakestream_api import WriterNames
from lakestream_operator.autoscaler import ScaleDecision, ShardDecision
from lakestream_operator.model import Action, Application, Delete, Emit, Kind, Memory, Reference, WriterSeen
from lakestream_operator.render import Plan
from lakestream_operator.upkeep import Failing


class Stop(Enum):
    """Why a writer's driver is ended on purpose; the value is the reason in events and conditions."""

    SUSPENDED = "Suspended"
    REMOVED = "WriterRemoved"
    DELETED = "Deleted"
    CHANGED = "SpecChanged"
    RESTART = "RestartRequested"
    ROLLED_BACK = "RolledBack"
    DRIFTED = "SparkApplicationChanged"


class Situation(Enum):
    """In what state a writer is."""

    RUNNING = "its driver commits batches"
    STARTING = "its driver is being started"
    STALLED = "its driver runs or should run, but something is wrong"
    DRAINING = "its driver ends the batch in hand"
    STOPPING = "its driver's pod ends"
    STOPPED = "nothing of it runs, as it should be"
    BACKING_OFF = "its driver failed and will be started again"
    BLOCKED = "its driver failed and will not be started again with this document"


@dataclass(frozen=True, slots=True)
class Goal:
    """What one writer should be."""

    namespace: str
    names: WriterNames
    plan: Plan | None
    """What it should run; none: nothing."""
    stop: Stop | None = None
    """Why it should run nothing."""
    rollback: Plan | None = None
    """What it may go back to."""
    went_back: bool = False
    """Whether `plan` is that, because what is asked for never got to run."""
    unheard: bool = False
    """Whether its driver cannot be told anything, since that is refused, and is to end all the same."""

    def deleting(self, app: Application, reason: str, memory: Memory, message: str, *events: Emit) -> Outcome:
        """What ends its driver: its SparkApplication is deleted."""
        delete = Delete(Reference(Kind.SparkApplication, self.namespace, self.names.application), app.uid)
        return Outcome(Situation.STOPPING, reason, memory, message, (delete, *events))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision about one writer."""

    situation: Situation
    reason: str
    """Why, in one word."""
    memory: Memory
    """What to remember."""
    message: str = ""
    """Why, in a sentence that says what to do; empty when all is well."""
    actions: tuple[Action, ...] = ()
    start: bool = False
    """Create the SparkApplication, and before that all that it needs."""
    ran: bool = False
    """Whether the driver that runs has committed a batch: its document is a good one."""
    wake_at: datetime | None = None
    """When to look again though nothing has happened; none: as usual."""


@dataclass(frozen=True, slots=True)
class WriterDecision:
    """All that is decided of one writer in a cycle, and what it was decided from."""

    goal: Goal
    seen: WriterSeen
    outcome: Outcome
    scale: ScaleDecision | None = None
    """None: it has no executors to be decided on."""
    shards: ShardDecision | None = None
    """Of the first writer: orders about the stream go to its driver."""
    failing: tuple[Failing, ...] = ()
    """What keeps failing beside its batches."""
    wanted_image: str = ""
    """That it would be started with now; empty: it would not be."""
    wanted_settings: str = ""
    """Hash of what the operator's settings would make of its pods now; empty: nothing."""
    rebound: bool = False
    """Whether it was taken from another operator's role a while ago: if it has that again, somebody gives it back."""

    @property
    def name(self) -> str:
        return self.goal.names.writer

    @property
    def is_gone(self) -> bool:
        """Whether the spec has it no more, and nothing of it runs."""
        return self.goal.stop is Stop.REMOVED and self.outcome.situation is Situation.STOPPED

    @property
    def is_rolled_back(self) -> bool:
        """Whether it runs an older document than the one asked for."""
        return self.goal.went_back or self.outcome.reason == Stop.ROLLED_BACK.value

    @property
    def has_other_image(self) -> bool:
        """Whether it runs another image than it would be started with now."""
        app = self.seen.application
        return bool(self.wanted_image and app and app.image not in ("", self.wanted_image))

    @property
    def has_other_settings(self) -> bool:
        """Whether its pods would be made in another way now, though it would run the same document."""
        app, plan = self.seen.application, self.goal.plan
        if app is None or plan is None or app.fingerprint != plan.fingerprint:
            return False
        return bool(self.wanted_settings and app.settings_hash not in ("", self.wanted_settings))
