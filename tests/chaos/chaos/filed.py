"""Files of events that a writer is asked to take beside the stream."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from random import Random

from chaos.events import Events, Sent
from chaos.ledger import Where
from chaos.poison import poison
from chaos.setting import Sink

_POISON = (
    "cut",
    "no version",
    "a fraction for a whole number",
    "no note",
    "unknown fields",
    "a name twice",
    "another table",
)


def write_file(file: Path, chance: Random, events: int, sink: Sink) -> dict[Where, Sent]:
    """Write lines, packed if the file's name says so. One in ten is poison, but for the first: files are judged by it.

    Returns what they are, each with its place: the file's path, and the byte at which its line begins.
    """
    supply, place = Events(chance), 0
    lines: list[bytes] = []
    sent: dict[Where, Sent] = {}
    for _ in range(events):
        thing = supply.fresh()
        # The stream has things of the same names.
        thing = replace(thing, id=f"{file.name}-{thing.id}")
        is_poison = bool(lines) and chance.random() < 0.1
        one = poison(chance.choice(_POISON), chance, thing, sink) if is_poison else thing.sent()
        sent[str(file), place, 0] = one
        lines.append(one.data + b"\n")
        place += len(lines[-1])
    data = b"".join(lines)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return sent
