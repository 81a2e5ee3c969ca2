"""The control ConfigMap: the operator's orders to a driver and, as annotations, what it remembers of the writer."""

from __future__ import annotations

from lakestream_api import Control, WriterNames
from lakestream_api.names import CONTROL_KEY, GROUP
from lakestream_operator.model import Kind, Manifest, Memory, Stream
from lakestream_operator.render.objects import manifest_of

MEMORY_ANNOTATION = f"{GROUP}/memory"
SCALING_ANNOTATION = f"{GROUP}/scaling-state"
SHARDS_ANNOTATION = f"{GROUP}/shards-state"


def control_manifest(
    names: WriterNames,
    stream: Stream,
    control: Control,
    memory: Memory,
    *,
    scaling_state: str | None = None,
    shard_state: str | None = None,
) -> Manifest:
    """ConfigMap of the orders."""
    annotations = {MEMORY_ANNOTATION: memory.model_dump_json(exclude_defaults=True)}
    if scaling_state is not None:
        annotations[SCALING_ANNOTATION] = scaling_state
    if shard_state is not None:
        annotations[SHARDS_ANNOTATION] = shard_state
    return {
        **manifest_of(Kind.ConfigMap, names.control, names, stream, annotations=annotations),
        "data": {CONTROL_KEY: control.model_dump_json(exclude_none=True)},
    }
