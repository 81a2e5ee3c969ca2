"""For loads that nobody audits."""

from __future__ import annotations

from collections.abc import Sequence

from lakestream_loadgen.ledger.outcomes import Settled
from lakestream_loadgen.records import Record


class NoLedger:
    """Notes nothing."""

    def sent(self, records: Sequence[Record]) -> int:
        return 0

    def settled(self, settled: Settled) -> None:
        pass

    def close(self) -> None:
        pass
