"""A process killed while it writes to a folder leaves whole objects or none."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from lakestream.log import ObstoreLogStore
from lakestream.storage import LakePath, S3Settings, StoreSettings, open_store

# Objects of 4 MB, so that most of the time is spent in the middle of one.
WRITER = """
import gzip, os, sys
from lakestream.log import ObstoreLogStore
from lakestream.storage import LakePath, S3Settings, StoreSettings, open_store

store = ObstoreLogStore(open_store(StoreSettings(LakePath.parse(sys.argv[1]), S3Settings("eu-west-1"))))
body = gzip.compress(os.urandom(4 << 20), compresslevel=0)
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):  # far more than it gets to, and no disk is full if nobody kills it
    store.create(f"batches/{number:012d}.json.gz", body)
sys.stdin.read()  # who kills it may be held up for so long
"""


@pytest.mark.parametrize("milliseconds", [5, 11, 23, 47])
def test_no_torn_object_is_ever_visible(tmp_path: Path, milliseconds: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("go\n")
        writer.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(milliseconds / 1000)
        writer.kill()

    store = ObstoreLogStore(open_store(StoreSettings(LakePath.parse(str(tmp_path)), S3Settings("eu-west-1"))))
    keys = store.list("batches")
    assert keys == [f"batches/{number:012d}.json.gz" for number in range(len(keys))]
    for key in keys:
        assert len(gzip.decompress(store.get(key))) == 4 << 20
    # What the kill left behind, if anything, is in nobody's way.
    store.create(f"batches/{len(keys):012d}.json.gz", b"next")
