"""What people ask of a writer while its drivers live and die."""

from __future__ import annotations

import re
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

from chaos.commands import call
from chaos.events import RELAXED_SCHEMA, SCHEMA, Sent
from chaos.filed import write_file
from chaos.ledger import Span, Where

if TYPE_CHECKING:
    from chaos.world import World

_REFUSALS = (
    *("One goes on at a time", "one is carried out at a time"),
    *("there is no checkpoint", "there is no folder", "the checkpoint has no commit"),
    "is no Hudi table: it has no .hoodie/hoodie.properties",  # it is being made
    *("nothing to replay", "Give --despite-deletes"),
    *("nothing is to be undone", "may have been cleaned", "is not known any more", "records are gone"),
    *("the table can be read as of", "that can be read is", "has no commits yet", "has yet to come"),
)
"""Of what may be refused, rightly."""
_UNTIL = re.compile(r"backfill \d+: what arrived in .* to (.*) UTC\.")
"""What `lakestream` says to a request for a span that goes on."""


class Asked:
    """The requests of a scenario. Each is made once: of one without an answer nobody knows whether it is there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._commands = 0
        self.readings = 1
        """How often a record may have been read: once by the stream, and by each span that was asked for."""
        self.spans: list[Span] = []
        """That are to be read once more for certain."""
        self.filed: dict[Where, Sent] = {}
        """What files hold that were to be taken."""
        self.replays = 0
        """How often what is in quarantine was to be read once more."""
        self.restores = 0
        """How often the table was to go back."""

    @property
    def is_in_order(self) -> bool:
        """As `Truth` says: neither a span nor a replay may have brought a record again."""
        return self.readings == 1 and not self.replays

    def span(self, but: float) -> None:
        """Ask for a span of the stream up to now, but for such a share of its life."""
        world = self._world
        if world.document["spec"]["schema"] != SCHEMA or self.restores:
            world.tell("no span is asked for: its quarantine is of another schema, or a restore may read it again")
            return
        since = world.created_at + but * (world.kinesis.clock.now() - world.created_at)
        self.readings += 1
        told = self._ask(f"a span since {since}", "backfill", "span", "--from", since.isoformat(), "--despite-deletes")
        if until := _UNTIL.match(told):
            self.spans.append(Span(since, datetime.fromisoformat(f"{until[1]}+00:00")))

    def file(self, chance: Random, events: int, suffix: str) -> None:
        """Ask for a file of events to be taken beside the stream."""
        world = self._world
        if world.stressed:
            world.tell("no file is asked for: without an answer nobody knows whether it will be taken")
            return
        file = world.folder / "files" / f"{self._commands}{suffix}"
        sent = write_file(file, chance, events, world.setting.sink)
        if self._ask(file.name, "backfill", str(file)).startswith("backfill"):
            self.filed |= sent

    def replay(self) -> None:
        """Mend the schema, and ask for what is in quarantine to be read once more."""
        world = self._world
        if self.readings > 1:
            world.tell(
                "no replay is asked for: what a span brought again would be a row, and in quarantine from before"
            )
            return
        world.document["spec"]["schema"] = RELAXED_SCHEMA
        self.replays += 1
        self._ask("a replay", "quarantine", "replay")

    def restore(self, share: float) -> None:
        """Ask for the table without such a share of its batches, and for the stream from there."""
        world = self._world
        if self.readings > 1:
            world.tell("no restore is asked for: it would be open how much of a span is read again")
            return
        self.restores += 1
        world.let_delete()  # without which a table cannot go back
        times = [commit["finishedAt"] for driver in world.drivers for commit in driver.commits()]
        to = times[int((1 - share) * len(times))] if times else "now"
        self._ask(f"the table of {to}", "table", "restore", "--to", to, "--yes")

    def _ask(self, what: str, *arguments: str) -> str:
        """What `lakestream` says to that of the writer, by the document as it is now, to whoever typed it."""
        world, stressed = self._world, self._world.stressed
        self._commands += 1
        answer = call(world, f"request-{self._commands}", arguments)
        told = answer.said
        world.tell(f"asked for {what}: {told}")
        if answer.status and not stressed and not any(reason in told for reason in _REFUSALS):
            world.faults.append(f"{what} was refused: {told}")
        return told
