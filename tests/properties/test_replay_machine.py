"""Edits, replays and backfills between any two deaths of drivers: `machines.replays`."""

from __future__ import annotations

from hypothesis import settings
from machines.replays import ReplayMachine

from lakestream.model import Definition

TestReplayMachine = ReplayMachine.TestCase
TestReplayMachine.settings = settings(stateful_step_count=15)


def test_a_batch_that_another_definition_than_its_plans_has_made_visible_stays() -> None:
    """Its own definition fails on it, so the document's made it, and was killed before the commit."""
    machine = ReplayMachine()
    machine.begin(definition=Definition("", "0", None), overwrites=False)
    machine.be_killed(step="planned", passes=0, is_ahead=True)
    machine.edit(definition=Definition("1", "", None))
    machine.be_killed(step="visible", passes=0, is_ahead=True)
    machine.mend_and_drain()
    assert machine.place.visible(0) == [(record, Definition("1", "", None)) for record in (0, 2, 3)]
    last = machine.last_commit()
    assert last is not None
    assert last.quarantined == 1, "of what is in quarantine, and not of what its plan's definition would reject"
    machine.each_record_is_in_one_place_once()
    machine.the_quarantine_is_listed()
