"""What becomes of one writer: pure decisions. One writer's failure is nothing to the others."""

from lakestream_operator.writers.lifecycle import decide_writer
from lakestream_operator.writers.outcome import Goal, Outcome, Situation, Stop, WriterDecision

__all__ = ["Goal", "Outcome", "Situation", "Stop", "WriterDecision", "decide_writer"]
