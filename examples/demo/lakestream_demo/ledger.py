"""The final figures of the load."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lakestream_demo.errors import DemoError
from lakestream_demo.observed import LoadSeen
from lakestream_loadgen.errors import LoadgenError
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.ledger.reader import read_ledger


def ledger_seen(folder: Path) -> LoadSeen:
    """What became of all records, by the ledger that the users kept."""
    try:
        outcomes = read_ledger(str(folder))["outcome"]
    except LoadgenError as error:
        raise DemoError(str(error)) from error
    acknowledged: int = pc.sum(pc.equal(outcomes, pa.scalar(Outcome.ACKNOWLEDGED, pa.uint8()))).as_py() or 0
    return LoadSeen(acknowledged, len(outcomes) - acknowledged)
