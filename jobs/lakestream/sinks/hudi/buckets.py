"""A bucket that has two file groups: Hudi refuses to write into it, at every try. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Of HoodieSimpleBucketIndex. That commits could be rolled back, it says in any case.
_REFUSAL = re.compile(
    r"Find multiple files at partition path=(?P<partition>.*?) that belong to the same bucket id = (?P<bucket>\d+)"
)
# A file group of the bucket index begins with its bucket's number.
_FILE = re.compile(r"\.?(?P<group>(?P<bucket>\d{8})-[^_/]+)_(?:[^_/]+_)?(?P<instant>\d{17})\.(?:parquet|log\.)")


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket with more than one file group."""

    partition: str
    bucket: int

    @classmethod
    def found_in(cls, text: str) -> SharedBucket | None:
        """The bucket that an exception of Hudi tells of, if it tells of one."""
        found = _REFUSAL.search(text)
        return cls(found["partition"], int(found["bucket"])) if found else None

    def told(self, table: str, names: Iterable[str]) -> str:
        """What happened and what to do, given the names of the partition's files."""
        begun: dict[str, str] = {}
        for found in filter(None, map(_FILE.match, names)):
            if int(found["bucket"]) == self.bucket:
                begun[found["group"]] = min(begun.get(found["group"], "9"), found["instant"])
        groups = ", ".join(
            f"{group} since {instant}" for group, instant in sorted(begun.items(), key=lambda item: item[1])
        )
        return (
            f"the table {table} has two file groups in bucket {self.bucket} of partition {self.partition or '(none)'}"
            f"{f' ({groups})' if groups else ''}: two processes have written it at once, or one that did not know what "
            "was there. Keys may be in it twice, and Hudi takes no more rows for this bucket. Neither delete a file "
            "group nor roll commits back: rows would be gone that the checkpoint takes for written. Stop whatever else "
            "writes the table, and give the writer another path and another spec.checkpoint; older rows are in the "
            'table still: docs/hudi.md, "Two file groups in a bucket"'
        )
