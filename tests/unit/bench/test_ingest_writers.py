"""Which writers `ingest` measures."""

import sys
from pathlib import Path

import pytest

from lakestream_bench.ingest import Contender, main

PLAIN = {"options": {"hoodie.parquet.dictionary.enabled": "false"}}


def test_a_hudi_table_with_other_fields_is_measured_beside_the_one_without() -> None:
    assert Contender.of("cow", PLAIN) == [Contender("cow", "cow"), Contender("cow *", "cow", PLAIN)]
    assert Contender.of("cow", {}) == [Contender("cow", "cow")]


def test_files_of_json_have_no_fields_of_hudi() -> None:
    assert Contender.of("json", PLAIN) == [Contender("json", "json")]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--writers", "json", "--hudi", "cleaning: {retainHours: 2}"], "--hudi: no writer of --writers"),
        (["--hudi", "operation: merge"], "hudi.operation: "),
        (["--measure", "freshness"], "--measure: invalid choice: 'freshness'"),
    ],
)
def test_what_would_come_to_nothing_is_told_first(
    options: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ingest", "--out", str(tmp_path / "ingest.json"), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
