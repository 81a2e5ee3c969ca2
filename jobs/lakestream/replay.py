"""Which definition a batch is carried out by: a plan's own, and the document's for what is planned from now on.

A driver that died may have left two plans, and the document may have been edited since. Part of these batches may be in
the sink or in quarantine already, so they are finished as they were begun, each by the definition in its plan, with a
pipeline and a sink of their own. Then the document's comes into force.

A batch that *cannot* be written by its own definition would stop the writer for good, whatever a person mends in the
document. So the document's definition takes over what is left then, and as a whole: a batch that is not visible is
written anew, and its quarantine with it. The same goes for plans of an earlier release that have no definition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import groupby
from typing import Protocol

from lakestream.engine import Until
from lakestream.errors import QuarantineLimitError, RegistryError, SettingsError, SinkError
from lakestream.model import RULES, BatchPlan, Definition, RecordFormat

logger = logging.getLogger(__name__)

_UNWRITABLE = (SettingsError, SinkError, QuarantineLimitError)
"""What another definition may mend: Spark does not accept it, or fails on a row; too much of it is unusable."""


class Runs(Protocol):
    """What is needed of an engine."""

    def run(self, until: Until, yields: Callable[[], bool]) -> int: ...
    def replay(self, plans: Sequence[BatchPlan]) -> int: ...


OpenEngine = Callable[[Definition], AbstractContextManager[Runs]]
"""Checks a definition, makes the sink ready for it, and runs batches by it. Of two, the first is closed before the
second is opened."""


class Restores(Protocol):
    """Takes the table back where somebody has asked for it, while no engine is open."""

    def look(self) -> None: ...
    def is_wanted(self) -> bool: ...
    def carry_out(self) -> int: ...


class NoRestores:
    """Of a table that cannot be taken back."""

    def look(self) -> None: ...

    def is_wanted(self) -> bool:
        return False

    def carry_out(self) -> int:
        return 0


def carry_out(
    pending: Sequence[BatchPlan], present: Definition, open_engine: OpenEngine, until: Until, restores: Restores
) -> int:
    """Finish what is pending, then run batches of the present definition; returns how many were committed.

    A table is taken back before the present definition is compared with it: what was added to it may be just what is
    undone.

    Args:
        pending: the log's plans without a commit.
        present: the document's definition.
        open_engine: for one definition; its errors in our own words.
        until: when the run ends.
        restores: of the writer's table; an engine ends its run when one is wanted.
    """
    done = 0
    for definition, plans in earlier([plan for plan in pending if plan.restore is None], present):
        numbers, changed = [plan.batch for plan in plans], definition.differences(present)
        logger.info("batches %s were planned before %s changed, and are finished as they were begun", numbers, changed)
        if definition.rules != RULES:
            logger.warning(
                "batches %s were planned by a release that makes rows by rules %d; this one has rules %d. What is not "
                "visible yet is written by these, as a whole",
                *(numbers, definition.rules, RULES),
            )
        try:
            with open_engine(definition) as engine:
                done += engine.replay(plans)
        except _unwritable(present) as error:
            logger.warning(
                "batches from %d on cannot be written as they were begun, and are written anew by the document as it "
                "is now (changed: %s): %s",
                *(numbers[0], changed, error),
            )
            break
    restores.look()
    while True:
        done += restores.carry_out()
        with open_engine(present) as engine:
            done += engine.run(until, restores.is_wanted)
        if not restores.is_wanted():
            return done


def earlier(pending: Sequence[BatchPlan], present: Definition) -> list[tuple[Definition, tuple[BatchPlan, ...]]]:
    """The plans that have to be finished before the present definition comes into force, by theirs, in order."""
    groups = [(own, tuple(plans)) for own, plans in groupby(pending, key=lambda plan: _own(plan, present))]
    return groups[:-1] if groups and groups[-1][0] == present else groups


def _unwritable(present: Definition) -> tuple[type[Exception], ...]:
    """Errors of an earlier definition after which the present one takes over; one that asks no registry does not wait
    for one, either."""
    return _UNWRITABLE if present.record_format is RecordFormat.AVRO else (*_UNWRITABLE, RegistryError)


def _own(plan: BatchPlan, present: Definition) -> Definition:
    own = plan.definition or present
    # A release that did not keep it went by the document's.
    return own if own.compression else replace(own, compression=present.compression)
