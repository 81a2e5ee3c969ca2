"""What a Python worker is spared; in a process of its own, as it changes the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

CODE = """
import gc, sys, zipimport
from lakestream.spark.worker import settle_worker
import inside
zips = lambda: [f for f in sys.path_importer_cache.values() if isinstance(f, zipimport.zipimporter)]
assert zips() and not gc.get_freeze_count()
settle_worker()
assert not zips() and gc.get_freeze_count()
frozen = gc.get_freeze_count()
import inside.more
settle_worker()
assert not zips() and gc.get_freeze_count() <= frozen
"""

OF_A_DAEMON = """
import gc
gc.freeze()
gc.get_freeze_count = None  # it counts all that is frozen, which would take a task longer than its records
from lakestream.spark.worker import settle_worker
settle_worker()
"""


def test_modules_in_zips_are_forgotten_and_found_again(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "code.zip", "w") as archive:
        archive.writestr("inside/__init__.py", "")
        archive.writestr("inside/more.py", "")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'code.zip')!r})\n{CODE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_its_daemon_froze_is_not_counted_by_each_task() -> None:
    done = subprocess.run([sys.executable, "-c", OF_A_DAEMON], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
