"""Names of the log's objects, relative to `<checkpoint>/<writer>/`.

    identity.json                    what the checkpoint belongs to
    epochs/000000000007.json         the seventh driver that was started
    epochs/000000000007.closed.json  …ended cleanly; neither it nor an earlier one writes any more
    batches/000000000042.json.gz     the plan of batch 42
    commits/000000000042.json.gz     batch 42 is visible in the sink
    manifests/000000000099.json.gz   the objects that batches 0 to 99 wrote
    replays/000000000003.json.gz     the third request to replay records of the quarantine, or to take other files
    replays/000000000003.cancelled.json  …is cancelled
    services/000000000002.json.gz    the second request for work on the table, as a compaction
    services/000000000002.decided.json  …is carried out for certain, or cancelled
    services/000000000002.done.json.gz  …and what came of it
    savepoints/20261122083213548.json.gz  where the writer stood with the commit of that instant, which has a savepoint

Numbers have twelve digits, so that the order of names is the order of numbers.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import TypeVar

from lakestream.errors import CorruptLogError

IDENTITY = "identity.json"
EPOCHS = "epochs"
BATCHES = "batches"
COMMITS = "commits"
MANIFESTS = "manifests"
REQUESTS = "replays"
SERVICES = "services"
SAVEPOINTS = "savepoints"

T = TypeVar("T")


def epoch_key(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:012d}.json"


def closed_key(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:012d}.closed.json"


def batch_key(batch: int) -> str:
    return f"{BATCHES}/{batch:012d}.json.gz"


def commit_key(batch: int) -> str:
    return f"{COMMITS}/{batch:012d}.json.gz"


def manifest_key(last_batch: int) -> str:
    return f"{MANIFESTS}/{last_batch:012d}.json.gz"


def request_key(request: int) -> str:
    return f"{REQUESTS}/{request:012d}.json.gz"


def cancelled_key(request: int) -> str:
    return f"{REQUESTS}/{request:012d}.cancelled.json"


def service_key(request: int) -> str:
    return f"{SERVICES}/{request:012d}.json.gz"


def decided_key(request: int) -> str:
    return f"{SERVICES}/{request:012d}.decided.json"


def outcome_key(request: int) -> str:
    return f"{SERVICES}/{request:012d}.done.json.gz"


def standing_key(instant: str) -> str:
    return f"{SAVEPOINTS}/{instant}.json.gz"


def number_of(key: str) -> int:
    """The number in a key of a numbered object: all but the identity.

    Raises:
        CorruptLogError: somebody put another object there.
    """
    digits = key.rpartition("/")[2].partition(".")[0]
    if not digits.isdecimal():
        raise CorruptLogError(f"{key} is no object of the log; remove it")
    return int(digits)


def pack(content: bytes) -> bytes:
    # Without a time in the header, so that equal documents are equal objects. Level 9 takes three times as long as this
    # for 3 to 9 % less, and a plan may be megabytes.
    return gzip.compress(content, 6, mtime=0)


def unpack(key: str, body: bytes, parse: Callable[[bytes], T]) -> T:
    """Decode an object; errors name it.

    Raises:
        CorruptLogError: not what `pack` made, or `parse` refuses it.
    """
    try:
        return parse(gzip.decompress(body))
    except (gzip.BadGzipFile, EOFError, zlib.error, CorruptLogError) as error:
        raise CorruptLogError(f"{key}: {error}") from error
