"""`lakestream files`: what is safe to read while a writer goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream.main import app
from lakestream.testing.logs import DOCUMENT, commit_of, log_at, plan_of


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Of each writer three batches are committed, of which one is in a manifest, and a fourth is planned."""
    (tmp_path / "orders.yaml").write_text(DOCUMENT.format(lake=tmp_path))
    for writer, files in (("json", 2), ("hudi", 1)):
        log = log_at(tmp_path / "checkpoint" / writer, keep=1)
        for batch in range(3):
            plan = plan_of(batch, log.epoch)
            log.put_plan(plan)
            log.put_commit(commit_of(plan, log.epoch, files=files))
            if batch == 0:
                log.expire()
        log.put_plan(plan_of(3, log.epoch))
    return tmp_path


def files(lake: Path, *arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(app, ["files", "--file", str(lake / "orders.yaml"), *arguments])
    return done.exit_code, done.output.splitlines()


def test_the_files_of_committed_batches(lake: Path) -> None:
    expected = [f"{lake}/json/b{batch}-{task}.json" for batch in range(3) for task in range(2)]
    assert files(lake, "--writer", "json") == (0, expected)


def test_those_of_the_quarantine_of_any_writer(lake: Path) -> None:
    expected = [f"{lake}/checkpoint/hudi/quarantine/b{batch}.parquet" for batch in range(3)]
    assert files(lake, "--writer", "hudi", "--quarantine") == (0, expected)


def test_a_hudi_table_is_not_read_by_its_files(lake: Path) -> None:
    status, output = files(lake, "--writer", "hudi")
    assert status == 2
    assert "known by its own timeline" in " ".join(output)


def test_a_writer_that_has_not_begun_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(DOCUMENT.format(lake=tmp_path))
    assert files(tmp_path, "--writer", "json") == (0, [])
