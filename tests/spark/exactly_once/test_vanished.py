"""Stream, table or checkpoint vanish under a running driver: it notices before its next commit, and says which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from lab.chain import Lab, Labs, Table
from lab.driver import Driver
from lab.lake import commits_of
from lakestream.statuses import Exit
from lakestream_localkinesis.testing import LocalKinesis

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def running(lab: Lab) -> Driver:
    """A driver with a batch behind it."""
    lab.stream.put(1, records=15)
    driver = lab.start()
    driver.until_committed(1)
    return driver


def delete(lab: Lab, path: str) -> None:
    """All at once: one by one, files would be gone, and others come, under the hands of who deletes them."""
    Path(path).rename(lab.folder / "deleted")


@pytest.fixture
def lab(labs: Labs, request: pytest.FixtureRequest) -> Iterator[Lab]:
    made = labs.make(request.param)
    yield made
    made.end()


@pytest.mark.parametrize("lab", [Table.MOR], indirect=True)
def test_a_table_that_is_deleted_is_not_made_anew_from_the_middle_of_the_stream(lab: Lab) -> None:
    driver = running(lab)
    delete(lab, lab.writer.path)
    lab.stream.put(1, records=15)
    told = (f"the table {lab.writer.path} was deleted", "delete the checkpoint as well")
    assert driver.wait() == Exit.TABLE_GONE
    assert told[0] in driver.log.read_text().splitlines()[-1]
    # A shard that gets its first record now is written down before there is a batch to it.
    assert len([commit for commit in commits_of(lab.writer) if commit.sink]) == 1
    lab.start().require_refusal(Exit.TABLE_GONE, *told)
    assert not [path for path in Path(lab.writer.path).rglob("*") if path.is_file()]


@pytest.mark.parametrize("lab", [Table.JSON], indirect=True)
def test_a_checkpoint_that_is_deleted_ends_the_driver(lab: Lab) -> None:
    driver = running(lab)
    written = {path for path in Path(lab.writer.path).rglob("*") if path.is_file()}
    delete(lab, lab.writer.checkpoint)
    lab.stream.put(1, records=15)
    assert driver.wait() == Exit.CHECKPOINT_GONE
    assert "the checkpoint was deleted, or emptied, under this driver" in driver.log.read_text()
    assert {path for path in Path(lab.writer.path).rglob("*") if path.is_file()} == written


@pytest.mark.parametrize("lab", [Table.JSON], indirect=True)
def test_another_stream_of_the_same_name_is_told_as_that(lab: Lab, server: LocalKinesis) -> None:
    driver = running(lab)
    # A driver that asks between the two finds no stream at all.
    driver.process.send_signal(SIGSTOP)
    server.client().delete_stream(StreamName=lab.stream.name)
    server.create_stream(lab.stream.name, shards=1)
    lab.stream.put(1, records=15)
    driver.process.send_signal(SIGCONT)
    driver.require_refusal(Exit.STREAM_RECREATED, "was deleted and created again", "another spec.checkpoint")
