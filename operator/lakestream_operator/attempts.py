"""Carries a decision out as far as the API server lets it, and keeps account of what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from lakestream_operator.errors import OperatorError, RetryLaterError
from lakestream_operator.model import Action, Emit, Observed, Refusal

Act = Callable[[Action], Awaitable[None]]


async def attempt(
    observed: Observed, actions: Mapping[str, tuple[Action, ...]], act: Act, now: datetime, chance: float
) -> dict[str, Refusal]:
    """Take the actions of each writer until one is refused; the others' are taken all the same.

    Args:
        observed: what was decided from.
        actions: by writer.
        act: takes one; raises an OperatorError.
        now: the time.
        chance: see `pause_after`.

    Returns:
        What is refused by now, for the next decision.
    """
    asked = observed.stream.asked
    # Of those that are tried now, each is over once its actions are taken.
    refusals = {name: one for name, one in observed.refusals.items() if name in actions or one.holds(asked, now)}
    for name, some in actions.items():
        try:
            for action in some:
                await act(action)
            refusals.pop(name, None)
        except OperatorError as error:
            refusal = Refusal.of(error, asked, observed.refusals.get(name), now, chance)
            refusals[name] = refusal
            if refusal.is_new:
                await act(_told(name, refusal))
            if isinstance(error, RetryLaterError):
                # Nobody answers, or we are too many: the others' come later.
                break
    return refusals


def _told(writer: str, refusal: Refusal) -> Emit:
    about = f"Writer {writer}: " if writer else ""
    return Emit(refusal.reason, f"{about}{refusal.message}", warning=True)
