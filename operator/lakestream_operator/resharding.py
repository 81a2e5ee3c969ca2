"""The one place where the shards of a stream are decided on: what to order of the first writer's driver, which has the
rights, and what is kept of the decision."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakestream_api import Resharding, Spec
from lakestream_operator.autoscaler import ShardDecision, ShardState, decide_shards, observe_stream
from lakestream_operator.model import Emit, WriterSeen

_EVERY = timedelta(minutes=1)
"""Between two decisions."""
_GIVE_UP = timedelta(hours=1)
"""An order that Kinesis has not begun with by then is withdrawn: the load that called for it may be gone."""


def reshard(spec: Spec, seen: WriterSeen, remembered: ShardState | None, now: datetime) -> ShardDecision | None:
    """Decide on the shards of a stream; none without `source.kinesis.shards`. What is remembered is written down with
    each order, and whenever what is remembered of the writer's executors is.

    Args:
        spec: of the LakeStream.
        seen: the objects of its first writer.
        remembered: the state of the last decision of this process; none after its start.
        now: the time.
    """
    if spec.source.kinesis.shards is None:
        return None
    state = remembered or ShardState.from_json(seen.shard_state)
    order = seen.control.shards if seen.control else None
    if order is not None and seen.shard_state is not None:
        # An order may have been written though nobody answered that it was: its call counts all the same.
        state = replace(state, calls=max(state.calls, ShardState.from_json(seen.shard_state).calls, key=_last))
    answer = _answer(seen, order)
    if order is not None and _is_over(spec, seen, order, answer, state, now):
        # What Kinesis has refused does not count among the calls of a day.
        state = replace(state, calls=state.calls[:-1]) if answer and answer.problem else state
        order = None
    return _decide(spec, seen, state, now) if order is None else _follow(spec, order, answer, state, now)


def _last(calls: tuple[datetime, ...]) -> datetime:
    return max(calls, default=datetime.min.replace(tzinfo=UTC))


def _answer(seen: WriterSeen, order: int | None) -> Resharding | None:
    """What became of this order."""
    told = seen.report.resharding if seen.report else None
    return told if told and told.ordered == order else None


def _is_over(
    spec: Spec, seen: WriterSeen, order: int, answer: Resharding | None, state: ShardState, now: datetime
) -> bool:
    """Whether an order no longer stands, though it was not carried out."""
    if spec.scaling.dry_run or any(window.until(now) for window in spec.scaling.excluded_windows):
        return True
    if answer is not None and answer.updating:
        return False
    return _is_beyond(spec, seen, order, answer) or not state.calls or now - state.calls[-1] > _GIVE_UP


def _is_beyond(spec: Spec, seen: WriterSeen, order: int, answer: Resharding | None) -> bool:
    """Whether it leads out of bounds that are others since."""
    limits = spec.source.kinesis.shards
    assert limits is not None
    told = [answer.open_shards] if answer else []
    told += [one.open_shards for one in reversed(seen.report.batches)] if seen.report else []
    # Where nobody knows, the bounds themselves have to do: what is withdrawn too soon is ordered again.
    there = next(filter(None, told), limits.min)
    # A stream that is beyond them comes back by steps.
    return not min(there, limits.min) <= order <= max(there, limits.max)


def _follow(spec: Spec, order: int, answer: Resharding | None, state: ShardState, now: datetime) -> ShardDecision:
    """Wait for an order to be carried out."""
    if answer is None or answer.updating:
        return ShardDecision(order, state)
    if answer.open_shards == order:
        return ShardDecision(None, replace(state, decided_at=now, explanation=f"{order} shards, as ordered"))
    if not answer.problem:
        return ShardDecision(order, state)
    had = "" if answer.open_shards is None else f"{answer.open_shards} → "
    text = f"{had}{order} shards: Kinesis refuses: {answer.problem}"
    if state.told == text:
        return ShardDecision(order, state)
    event = Emit("ReshardingRefused", f"Stream {spec.source.kinesis.stream}: {text}", warning=True)
    return ShardDecision(order, replace(state, explanation=text, told=text), (event,))


def _decide(spec: Spec, seen: WriterSeen, state: ShardState, now: datetime) -> ShardDecision:
    """Look at the stream, once a minute."""
    assert spec.source.kinesis.shards is not None
    if state.decided_at is not None and abs(now - state.decided_at) < _EVERY:
        return ShardDecision(None, state)
    if until := next((end for window in spec.scaling.excluded_windows if (end := window.until(now))), None):
        return ShardDecision(None, replace(state, explanation=f"no change until {until:%F %R} UTC: excludedWindows"))
    decision = decide_shards(spec.source.kinesis.shards, observe_stream(seen.report, now), state, now)
    stream = f"Stream {spec.source.kinesis.stream}"
    if decision.target is None:
        return decision
    if not spec.scaling.dry_run:
        return replace(decision, events=(Emit("Resharding", f"{stream}: {decision.state.explanation}"),))
    text, told = f"dry run: {decision.state.explanation}", f"dry run: {decision.target}"
    events = () if state.told == told else (Emit("DryRun", f"{stream}: {text}"),)
    # As if nothing had been decided: the next minute says the same.
    return ShardDecision(None, replace(state, decided_at=now, explanation=text, told=told), events)
