"""What a decision about one writer means for its objects. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakestream_api import Control
from lakestream_operator.executors import is_to_be_kept
from lakestream_operator.model import (
    Action,
    Apply,
    Create,
    Delete,
    Emit,
    Kind,
    Manifest,
    Memory,
    Reference,
    Stream,
    WriterSeen,
)
from lakestream_operator.render import control_manifest, document_manifest, labelled, render_application, supports
from lakestream_operator.settings import JobSettings
from lakestream_operator.writers import Goal, WriterDecision

REPLACED = "RoleReplaced"
"""Event: a driver was bound to the role of another release of the chart."""


def changes_for(stream: Stream, decision: WriterDecision, job: JobSettings) -> Iterator[Action]:
    """The actions, in the order in which they have to be taken.

    1. What a driver finds when it starts, and what is remembered: were it lost, a failure could be counted twice.
    2. What ends a driver.
    3. What starts one.
    4. What is said about it.
    """
    goal, outcome, scale, shards = decision.goal, decision.outcome, decision.scale, decision.shards
    if decision.is_gone:
        yield from _removal(goal, decision.seen)
        return
    # What a driver of another document has, it needs until it has ended: its rights above all.
    if goal.plan is not None and (outcome.start or _runs_this(decision)):
        for manifest in supports(goal.plan, stream, job.cluster_role):
            yield from _supported(decision, labelled(manifest, job.labels))
        good = goal.plan.document if outcome.ran else decision.seen.good
        yield from _applied(decision, labelled(document_manifest(goal.plan, stream, good), job.labels))
        if good != decision.seen.good:
            yield Emit("Running", f"Writer {goal.names.writer} commits batches with this spec.")
    if not goal.unheard:
        yield from _controlled(stream, decision, job)
    scaled = (replace(one, message=f"Writer {decision.name}: {one.message}") for one in (scale.events if scale else ()))
    said = [*outcome.actions, *scaled, *(shards.events if shards else ())]
    yield from (one for one in said if not isinstance(one, Emit))
    if outcome.start and goal.plan is not None:
        executors = scale.target if scale else goal.plan.stream.spec.scaling.min_executors
        yield Create(labelled(render_application(goal.plan, stream, job, executors), job.labels))
    yield from (one for one in said if isinstance(one, Emit))


def _removal(goal: Goal, seen: WriterSeen) -> Iterator[Action]:
    """Delete what is left of a writer that the spec has no more; its data stays."""
    left = {key: one["metadata"] for key, one in seen.objects.items() if "deletionTimestamp" not in one["metadata"]}
    for (kind, name), metadata in left.items():
        yield Delete(Reference(kind, goal.namespace, name), metadata["uid"])
    if left:
        yield Emit("WriterRemoved", f"Writer {goal.names.writer} is gone; its data and its checkpoint stay.")


def _runs_this(decision: WriterDecision) -> bool:
    """Whether the driver was started with the document that is wanted (or with one that says the same)."""
    app, plan = decision.seen.application, decision.goal.plan
    return app is not None and plan is not None and app.fingerprint == plan.fingerprint


def _controlled(stream: Stream, decision: WriterDecision, job: JobSettings) -> Iterator[Action]:
    """Orders and memory. The object is made along with the first driver, and stays while there is something to say."""
    goal, seen, memory = decision.goal, decision.seen, decision.outcome.memory
    scale, shards = decision.scale, decision.shards
    executors = scale.target if scale else seen.control.executors if seen.control else None
    order = shards.target if shards else None
    control = Control(executors=executors, shards=order, drain=memory.drain.id if memory.drain else None)
    live = seen.objects.get((Kind.ConfigMap, goal.names.control))
    if live is None and goal.plan is None and memory == Memory():
        return
    keep = control != seen.control or bool(scale and is_to_be_kept(scale, seen))
    manifest = control_manifest(
        goal.names,
        stream,
        control,
        memory,
        scaling_state=scale.state.to_json() if scale and keep else seen.scaling_state,
        shard_state=shards.state.to_json() if shards and keep else seen.shard_state,
    )
    yield from _applied(decision, labelled(manifest, job.labels))


def _applied(decision: WriterDecision, manifest: Manifest) -> Iterator[Action]:
    """Apply what is missing or has drifted; all of it before a start, in case what was seen is old."""
    live = decision.seen.objects.get((Kind[manifest["kind"]], manifest["metadata"]["name"]))
    if live is None or decision.outcome.start or not covers(live, manifest):
        yield Apply(manifest, live["metadata"].get("uid", "") if live else "")


def _supported(decision: WriterDecision, manifest: Manifest) -> Iterator[Action]:
    """Apply; a RoleBinding's role cannot be changed, as after the operator was installed anew under another name."""
    reference = Reference.of(manifest)
    live = decision.seen.objects.get((reference.kind, reference.name))
    if live is None or live.get("roleRef") == manifest.get("roleRef"):
        yield from _applied(decision, manifest)
    elif not decision.rebound:
        yield from (Delete(reference, live["metadata"]["uid"]), Apply(manifest))
        yield Emit(
            REPLACED,
            f"The driver of writer {decision.name} was bound to the ClusterRole {live['roleRef']['name']}, and is now"
            f" to {manifest['roleRef']['name']}. If this is said again, two releases of the chart serve the namespace"
            f" {reference.namespace}, and undo each other's work: uninstall one of them, or give each namespaces of its"
            " own (operator.namespaces).",
            warning=True,
        )


def covers(live: object, wanted: object) -> bool:
    """Whether an object has all that is wanted of it; what others have added is theirs."""
    if live == wanted:
        return True  # told at once, and most of an object is as it is wanted
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(key in live and covers(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(covers(one, value) for one in live) for value in wanted)
    return False
