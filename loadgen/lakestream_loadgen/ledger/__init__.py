"""The ledger: every record that was sent, and what became of it.

A worker appends to a file of its own. A SENT frame is written *before* a record first leaves the process,
a SETTLED frame when its outcome is known and before its user hears of it: a worker killed at any instant
leaves a file that names every record which may be in the stream. One that ends properly says so by an END frame.
"""

from lakestream_loadgen.ledger.format import LEDGER_SCHEMA, Outcome, Settled
from lakestream_loadgen.ledger.reader import Ledgers, OpenLedger, read_ledger, read_ledgers
from lakestream_loadgen.ledger.shipping import LedgerShipper
from lakestream_loadgen.ledger.writer import LedgerWriter

__all__ = [
    "LEDGER_SCHEMA",
    "LedgerShipper",
    "LedgerWriter",
    "Ledgers",
    "OpenLedger",
    "Outcome",
    "Settled",
    "read_ledger",
    "read_ledgers",
]
