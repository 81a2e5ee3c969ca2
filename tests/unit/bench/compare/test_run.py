"""Where the comparison writes its tables."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lakestream_bench.compare import run


def test_tables_are_written_beside_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder of what is temporary is in memory, nothing can be put out of the page cache."""
    out, memory = tmp_path / "out", tmp_path / "memory"
    out.mkdir()
    memory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(memory))
    monkeypatch.chdir(tmp_path)
    scratch: list[Path] = []

    class EndError(Exception):
        """Instead of Spark."""

    def session(folder: Path, _s3: None) -> None:
        scratch.append(folder)
        raise EndError

    monkeypatch.setattr(run, "_session", session)
    with pytest.raises(EndError):
        run.run(run.Comparison((), (), 1, 1, requests=False), Path("out/trials"))
    assert [folder.parent for folder in scratch] == [out]
    assert list(out.iterdir()) == []
