"""Carries a decision out as far as the API server lets it, and keeps account of what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from lakestream_operator.autoscaler import ScalingState, ShardState
from lakestream_operator.decide import Decision
from lakestream_operator.errors import OperatorError, RetryLaterError
from lakestream_operator.model import Action, Emit, Observed, Refusal

Act = Callable[[Action], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a decision."""

    refusals: Mapping[str, Refusal]
    """What is refused by now, for the next decision."""
    undone: Set[str]
    """Writers of which not all is done."""

    def remembered(
        self, decision: Decision, scaling: Mapping[str, ScalingState], shards: ShardState | None
    ) -> tuple[dict[str, ScalingState], ShardState | None]:
        """What the autoscaler remembers for the next decision; where what it wanted is not done, what it did before, so
        that it is wanted, and told, again.

        Args:
            decision: that was attempted.
            scaling: what it remembered of the writers' executors before.
            shards: the same of the stream's shards.
        """
        decided = {name: one for name, one in decision.scaling.items() if name not in self.undone}
        kept = {name: one for name, one in scaling.items() if name in self.undone and name in decision.scaling}
        return {**decided, **kept}, shards if decision.resharding in self.undone else decision.shards


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
