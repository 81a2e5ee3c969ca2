"""What is counted with which batch."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from lakestream.model import BatchCommit
from lakestream_bench.compare.trial import _Watch
from lakestream_bench.compare.usage import SparkCpu

T = datetime(2026, 1, 1, tzinfo=UTC)


class Idle:
    """CPU of a session that does nothing."""

    def seconds(self) -> float:
        return 0.0


def test_what_a_compaction_does_behind_the_last_batch_is_counted_with_it(tmp_path: Path) -> None:
    """There is no next one."""
    replaced, rest = tmp_path / "replaced.parquet", tmp_path / "rest.log"
    replaced.write_bytes(b"1")
    watch = _Watch(tmp_path, cast("SparkCpu", Idle()))
    rest.write_bytes(b"22")
    watch.committed(BatchCommit(0, 1, T, T, T, T, True, 10, 100, 0, None, ()))
    (of_batch,) = watch.batches
    assert (of_batch.objects_written, of_batch.bytes_written, of_batch.objects_deleted) == (1, 2, 0)
    assert (of_batch.files, of_batch.bytes_at_rest) == (2, 3)

    replaced.unlink()
    (tmp_path / "compacted.parquet").write_bytes(b"333")
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "commit").write_bytes(b"4444")
    watch.count(cpu=1.5)
    (settled,) = watch.batches
    assert (settled.objects_written, settled.bytes_written, settled.objects_deleted) == (3, 9, 1)
    assert (settled.files, settled.data_files, settled.bytes_at_rest, settled.cpu) == (3, 2, 9, 1.5)
    watch.count(cpu=0.0)
    assert watch.batches == [settled]
