"""Carries a decision out as far as the API server lets it, and keeps account of what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from lakestream_operator.decide import Decision, Remembered
from lakestream_operator.errors import OperatorError, RetryLaterError
from lakestream_operator.model import Action, Emit, Observed, Refusal

Act = Callable[[Action], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a decision."""

    refusals: Mapping[str, Refusal]
    """What is refused by now, for the next decision."""
    undone: Set[str]
    """Writers of which not all is done."""

    def remembered(self, decision: Decision, before: Remembered) -> Remembered:
        """What is remembered for the next decision; where what was wanted is not done, what was before, so that it is
        wanted, and told, again.

        Args:
            decision: that was attempted.
            before: what was remembered for it.
        """
        after = decision.remembered
        return Remembered(
            scaling=self._done(after.scaling, before.scaling),
            shards=before.shards if decision.resharding in self.undone else after.shards,
            bound=self._done(after.bound, before.bound),
            told=before.told if "" in self.undone else after.told,
            poisoned=after.poisoned,
        )

    def _done(self, after: Mapping[str, T], before: Mapping[str, T]) -> dict[str, T]:
        """By writer."""
        decided = {name: one for name, one in after.items() if name not in self.undone}
        return decided | {name: one for name, one in before.items() if name in self.undone and name in after}


async def attempt(
    observed: Observed, actions: Mapping[str, tuple[Action, ...]], act: Act, now: datetime, chance: float
) -> Attempt:
    """Take the actions of each writer until one is refused; the others' are taken all the same.

    Args:
        observed: what was decided from.
        actions: by writer.
        act: takes one; raises an OperatorError.
        now: the time.
        chance: see `pause_after`.
    """
    asked = observed.stream.asked
    # Of those that are tried now, each is over once its actions are taken.
    refusals = {name: one for name, one in observed.refusals.items() if name in actions or one.holds(asked, now)}
    undone = {*refusals, *actions}
    for name, some in actions.items():
        try:
            for action in some:
                await act(action)
            refusals.pop(name, None)
            undone.discard(name)
        except OperatorError as error:
            refusal = Refusal.of(error, asked, observed.refusals.get(name), now, chance)
            refusals[name] = refusal
            if refusal.is_new:
                await act(_told(name, refusal))
            if isinstance(error, RetryLaterError):
                # Nobody answers, or we are too many: the others' come later.
                break
    return Attempt(refusals, undone)


def _told(writer: str, refusal: Refusal) -> Emit:
    about = f"Writer {writer}: " if writer else ""
    return Emit(refusal.reason, f"{about}{refusal.message}", warning=True)
