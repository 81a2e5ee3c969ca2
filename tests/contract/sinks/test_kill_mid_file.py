"""Who lists the folder of a table sees each file whole, while it is written and after a kill."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import discard_unfinished
from lakestream.storage import LakePath, S3Settings, StoreSettings

# Objects of 4 MB, so that most of the time is spent in the middle of one.
WRITER = """
import sys
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import object_name, put_all
from lakestream.storage import LakePath, S3Settings, StoreSettings

store, content = StoreSettings(LakePath.parse(sys.argv[1]), S3Settings("eu-west-1")), bytes(4 << 20)
print("ready", flush=True)
sys.stdin.readline()
for batch in range(100):  # far more than it gets to, and no disk is full if nobody kills it
    ref = BatchRef(batch, "5e0c11aa-1111")
    put_all(store, {f"dt={task}/{object_name(ref, task, 'json')}": content for task in range(2)})
sys.stdin.read()  # who kills it may be held up for so long
"""


def files(folder: Path) -> Iterator[tuple[str, int]]:
    """What Spark takes: no name that begins with _ or a dot, nor a folder of such a name."""
    for file in folder.glob("[!_.]*/*"):
        try:
            yield file.name, file.stat().st_size
        except FileNotFoundError:
            yield file.name, 0  # it had another name when it was whole


@pytest.mark.parametrize("milliseconds", [5, 11, 47])
def test_no_file_in_part_is_ever_visible(tmp_path: Path, milliseconds: int) -> None:
    seen: set[tuple[str, int]] = set()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("go\n")
        writer.stdin.flush()
        end = time.monotonic() + milliseconds / 1000
        while time.monotonic() < end:
            seen.update(files(tmp_path))
        writer.kill()
    seen.update(files(tmp_path))
    assert [(name, size) for name, size in seen if not name.endswith(".json") or size != 4 << 20] == []
    discard_unfinished(
        StoreSettings(LakePath.parse(str(tmp_path)), S3Settings("eu-west-1")), BatchRef(100, "5e0c11aa-1111")
    )
    assert {file.suffix for file in tmp_path.rglob("*") if file.is_file()} <= {".json"}
