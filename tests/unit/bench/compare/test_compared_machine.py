"""What figures depend on."""

from __future__ import annotations

from pathlib import Path

from lakestream_bench.compare.machine import digest_of


def test_other_sources_are_another_setup(tmp_path: Path) -> None:
    (tmp_path / "sinks").mkdir()
    (tmp_path / "sinks" / "hudi.py").write_text("WAIT = 1")
    before = digest_of(tmp_path)
    assert digest_of(tmp_path) == before
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "hudi.pyc").write_bytes(b"1")
    assert digest_of(tmp_path) == before
    (tmp_path / "sinks" / "hudi.py").write_text("WAIT = 2")
    assert digest_of(tmp_path) != before
