"""Edits, replays and backfills between any two deaths of drivers: `machines.replays`."""

from __future__ import annotations

from hypothesis import settings
from machines.replays import ReplayMachine

TestReplayMachine = ReplayMachine.TestCase
TestReplayMachine.settings = settings(stateful_step_count=15)
