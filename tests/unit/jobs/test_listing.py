"""`lakestream files`: what is safe to read while a writer goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream.main import app
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.storage import LakePath, S3Settings, StoreSettings
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
    return done.exit_code, done.stdout.splitlines()


def test_the_files_of_committed_batches(lake: Path) -> None:
    expected = [f"{lake}/json/b{batch}-{task}.json" for batch in range(3) for task in range(2)]
    assert files(lake, "--writer", "json") == (0, expected)


def test_those_of_the_quarantine_of_any_writer(lake: Path) -> None:
    expected = [f"{lake}/checkpoint/hudi/quarantine/b{batch}.parquet" for batch in range(3)]
    assert files(lake, "--writer", "hudi", "--quarantine") == (0, expected)


def test_a_hudi_table_is_not_read_by_its_files(lake: Path) -> None:
    assert files(lake, "--writer", "hudi") == (2, [])


def test_a_writer_that_has_not_begun_has_no_files_and_gets_no_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "orders.yaml").write_text(DOCUMENT.format(lake=tmp_path))
    assert files(tmp_path, "--writer", "json") == (0, [])
    assert f"no driver of writer json has begun: it has no checkpoint at {tmp_path}/checkpoint" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["orders.yaml"]


@pytest.mark.parametrize(
    "command",
    [
        ["files", "--writer", "json"],
        ["query", "--writer", "json"],
        ["table", "--writer", "json"],
        ["quarantine", "list", "--writer", "json"],
        ["quarantine", "replay", "--writer", "json"],
        ["backfill", "status", "--writer", "json"],
        ["backfill", "files", "--writer", "json", "orders.yaml"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_checkpoint_that_is_mistyped_is_told_and_not_made(lake: Path, command: list[str]) -> None:
    place, checkpoint = at(lake / "json"), lake / "checkpoint" / "json"
    owner = Owner(log_at(checkpoint).checkpoint, str(checkpoint), "orders", "json")
    TableClaim(place, place / "_lakestream", owner).take(wrote=False)
    document = lake / "mistyped.yaml"
    document.write_text(DOCUMENT.format(lake=lake).replace("/checkpoint", "/checkpiont"))
    command = [word.replace("orders.yaml", str(lake / "events.json")) for word in command]
    (lake / "events.json").write_text('{"order_id": "a"}\n')
    done = CliRunner().invoke(app, [*command, "-f", str(document)])
    assert done.exit_code == 2
    assert f"there is no checkpoint at {lake}/checkpiont/json, and {lake}/json/_lakestream/owner says" in done.stderr
    assert f"is at {checkpoint}: see spec.checkpoint" in done.stderr
    assert not (lake / "checkpiont").exists()


def test_nor_is_the_folder_of_a_quarantine_in_which_nothing_is(lake: Path) -> None:
    log_at(lake / "checkpoint" / "new")
    document = lake / "new.yaml"
    document.write_text(DOCUMENT.format(lake=lake).replace("name: json", "name: new"))
    (lake / "json").mkdir()
    done = CliRunner().invoke(app, ["quarantine", "list", "-f", str(document), "--writer", "new"])
    assert (done.exit_code, done.stdout) == (0, "the quarantine is empty\n")
    assert not (lake / "checkpoint" / "new" / "quarantine").exists()


def at(folder: Path) -> StoreSettings:
    return StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1"))
