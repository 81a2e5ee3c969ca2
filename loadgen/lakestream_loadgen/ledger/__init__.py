"""The ledger: every record that was sent, and what became of it.

A worker appends to a file of its own. A SENT frame is written *before* a record first leaves the process,
a SETTLED frame when its outcome is known and before its user hears of it: a worker killed at any instant
leaves a file that names every record which may be in the stream. One that ends properly says so by an END frame.

Its modules are imported one by one: who writes, ships or reads one does not load the libraries of the others.
"""

SUFFIX = ".ledger"
"""Of a worker's file."""
