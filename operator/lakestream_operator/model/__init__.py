"""What is seen, what is remembered and what is done: frozen, without I/O."""

from lakestream_operator.model.actions import (
    Action,
    Apply,
    Create,
    Delete,
    Emit,
    Finalize,
    Kind,
    Manifest,
    Reference,
)
from lakestream_operator.model.heard import Heard
from lakestream_operator.model.memory import Drain, Ending, Memory, Remade
from lakestream_operator.model.observed import (
    Application,
    DriverPod,
    Observed,
    PodPhase,
    Stream,
    WriterSeen,
)
from lakestream_operator.model.refusal import Refusal

__all__ = [
    "Action",
    "Application",
    "Apply",
    "Create",
    "Delete",
    "Drain",
    "DriverPod",
    "Emit",
    "Ending",
    "Finalize",
    "Heard",
    "Kind",
    "Manifest",
    "Memory",
    "Observed",
    "PodPhase",
    "Reference",
    "Refusal",
    "Remade",
    "Stream",
    "WriterSeen",
]
