"""All of a stream but its records, as plain values (JSON's), and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from lakestream_localkinesis.core.changes import (
    Change,
    Delete,
    Merge,
    Open,
    Scale,
    SetMaxRecordBytes,
    SetMode,
    Split,
)
from lakestream_localkinesis.core.consumer import Consumer
from lakestream_localkinesis.core.hashing import HashRange
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.core.ondemand import Demand
from lakestream_localkinesis.core.shard import Shard
from lakestream_localkinesis.core.stream import RecordDistribution, Stream, StreamMode, StreamStatus, Transition

State = dict[str, Any]

_CHANGES: dict[str, type[Change]] = {
    kind.__name__: kind for kind in (Open, Split, Merge, Scale, SetMode, SetMaxRecordBytes, Delete)
}


def stream_state(stream: Stream) -> State:
    """What a stream is, and what its next sequence numbers and changes rest on.

    Rates and subscriptions are left out: they are those of a moment.
    """
    return {
        "name": stream.name,
        "arn": stream.arn,
        "id": stream.id,
        "created_ms": stream.created_ms,
        "mode": stream.mode,
        "tags": stream.tags,
        "retention_hours": stream.retention_hours,
        "trimmed_ms": stream.trimmed_ms,
        "max_record_bytes": stream.max_record_bytes,
        "distribution": stream.distribution,
        "reshardings_ms": stream.reshardings_ms,
        "mode_changes_ms": stream.mode_changes_ms,
        "next_index": stream.next_index,
        "demand": {"since_ms": stream.demand.since_ms, "given": stream.demand.given},
        "transition": stream.transition and _transition_state(stream.transition),
        "consumers": [_consumer_state(consumer) for consumer in stream.consumers.values()],
        "shards": [_shard_state(shard) for shard in stream.shards.values()],
    }


def update_stream(present: Stream | None, state: State, limits: Limits) -> Stream:
    """The stream of a state, with the records of the one before: shards that the state lacks are gone."""
    before = present.shards if present else {}
    stream = Stream(
        name=state["name"],
        arn=state["arn"],
        id=state["id"],
        created_ms=state["created_ms"],
        mode=StreamMode(state["mode"]),
        limits=limits,
        tags=state["tags"],
        retention_hours=state["retention_hours"],
        trimmed_ms=state["trimmed_ms"],
        max_record_bytes=state["max_record_bytes"],
        distribution=RecordDistribution(state["distribution"]),
        reshardings_ms=state["reshardings_ms"],
        mode_changes_ms=state["mode_changes_ms"],
        next_index=state["next_index"],
        demand=_demand(state["demand"]),
        transition=_transition(state["transition"]) if state["transition"] else None,
        consumers={consumer["name"]: Consumer(**consumer) for consumer in state["consumers"]},
    )
    stream.adopt([_shard(before.get(shard["index"]), shard, limits) for shard in state["shards"]])
    return stream


def _demand(state: State) -> Demand:
    # Journals from before shards were split one by one have totals of the stream, which say nothing of its shards.
    return Demand(state["since_ms"], tuple(map(tuple, state["given"]))) if "given" in state else Demand()


def _shard_state(shard: Shard) -> State:
    return {
        "index": shard.index,
        "start": shard.hash_range.start,
        "end": shard.hash_range.end,
        "created_ms": shard.created_ms,
        "created_s": shard.created_s,
        "parents": shard.parents,
        "closed_ms": shard.closed_ms,
    }


def _shard(present: Shard | None, state: State, limits: Limits) -> Shard:
    shard = present
    # Not by its truth: it is false without records.
    if shard is None:
        shard = Shard(
            index=state["index"],
            hash_range=HashRange(state["start"], state["end"]),
            created_ms=state["created_ms"],
            created_s=state["created_s"],
            limits=limits,
            parents=tuple(state["parents"]),
        )
    if shard.is_open and state["closed_ms"] is not None:
        shard.close(state["closed_ms"])
    return shard


def _consumer_state(consumer: Consumer) -> State:
    return {
        "name": consumer.name,
        "arn": consumer.arn,
        "created_ms": consumer.created_ms,
        "active_ms": consumer.active_ms,
        "tags": consumer.tags,
        "gone_ms": consumer.gone_ms,
    }


def _transition_state(transition: Transition) -> State:
    change = transition.change
    return {
        "status": transition.status,
        "due_ms": transition.due_ms,
        "change": type(change).__name__,
        "arguments": [getattr(change, name) for name in _fields(type(change))],
    }


def _transition(state: State) -> Transition:
    kind = _CHANGES[state["change"]]
    # JSON has no StreamMode; a StrEnum's value finds its member.
    arguments = [StreamMode(value) if isinstance(value, str) else value for value in state["arguments"]]
    return Transition(StreamStatus(state["status"]), state["due_ms"], kind(*arguments))


def _fields(kind: type[Change]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
