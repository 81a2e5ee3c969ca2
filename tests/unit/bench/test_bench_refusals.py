"""Options of benchmarks that would come to nothing are told before anything is measured."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from lakestream_bench import ingest, soak


@pytest.mark.parametrize(
    ("bench", "options", "told"),
    [
        (soak, ["--interval", "10 seconds"], "--interval: '10 seconds' is not a duration"),
        (soak, ["--writers", "json", "--hudi", "cleaning: {retainHours: 2}"], "--hudi: no writer of --writers"),
        (soak, ["--hudi", "cleaning: {retainDays: 2}"], "hudi.cleaning.retainDays: "),
        (soak, ["--hudi", "cleaning"], "--hudi: 'cleaning' is no mapping"),
        (soak, ["--hudi", "{"], "--hudi: '{' is no YAML"),
        (ingest, ["--writers", "json", "--hudi", "cleaning: {retainHours: 2}"], "--hudi: no writer of --writers"),
        (ingest, ["--hudi", "operation: merge"], "hudi.operation: "),
        (ingest, ["--measure", "freshness"], "--measure: invalid choice: 'freshness'"),
    ],
)
def test_what_would_come_to_nothing_is_told_first(
    bench: ModuleType,
    options: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(tmp_path / "figures.json"), *options])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
