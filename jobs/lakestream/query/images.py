"""Names of columns: those that Hudi adds to each row, and those of changes."""

from __future__ import annotations

COMMIT_TIME = "_hoodie_commit_time"
"""Column with the instant that wrote the row."""
SEQUENCE = "_hoodie_commit_seqno"
KEY = "_hoodie_record_key"
PARTITION = "_hoodie_partition_path"

OP = "op"
"""`insert`, `update` or `delete`."""
INSTANT = "instant"
"""The commit that wrote the row as it is; null of a delete, which leaves no row that could tell."""
ROW_KEY = "key"
"""Hudi's text of the row's key."""
BEFORE, AFTER = "before", "after"
"""All columns of the table, but for Hudi's own; null where there was, or is, no row."""
