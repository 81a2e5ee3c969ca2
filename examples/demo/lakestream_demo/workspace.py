"""The output folder: fresh for each run, and never emptied of anything that the demo did not make."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakestream_demo.errors import WorkspaceError

MARKER = ".lakestream-demo"
_FOLDERS = ("lake", "ledger", "logs", "progress", "snapshot", "statistics", "tmp")
_FILES = ("history.json", "inspection.json", "lakestream.yaml", "queries.sql", "report.html", "result.json")


@dataclass(frozen=True)
class Workspace:
    """Names of what a run makes."""

    root: Path

    @property
    def document(self) -> Path:
        return self.root / "lakestream.yaml"

    @property
    def result(self) -> Path:
        return self.root / "result.json"

    @property
    def history(self) -> Path:
        """The run over time."""
        return self.root / "history.json"

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.root / "report.html"

    @property
    def queries(self) -> Path:
        return self.root / "queries.sql"

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger"

    @property
    def inspection(self) -> Path:
        """What the child that reads the lake found."""
        return self.root / "inspection.json"

    @property
    def snapshot(self) -> Path:
        """The Hudi table's rows at the end, as Parquet: what the audit compared."""
        return self.root / "snapshot" / "rows"

    @property
    def statistics(self) -> Path:
        """Locust's CSV files."""
        return self.root / "statistics"

    @property
    def scratch(self) -> Path:
        """Where Spark spills to."""
        return self.root / "tmp"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def progress(self, writer: str) -> Path:
        return self.root / "progress" / f"{writer}.jsonl"


@contextmanager
def fresh_workspace(root: Path) -> Iterator[Workspace]:
    """Make the folder, or empty it of an earlier run; it is locked for the length of the `with` block.

    Raises:
        WorkspaceError: the folder holds something else, another run is using it, or it cannot be used at all.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_taken(root))
        except OSError as error:
            advice = "Free some room, see that you may write there, or choose another folder with --out."
            raise WorkspaceError(f"{root} cannot be used: {error}", advice) from error
        yield Workspace(root)


@contextmanager
def _taken(root: Path) -> Iterator[None]:
    marker = root / MARKER
    if root.exists() and not marker.exists() and (not root.is_dir() or any(root.iterdir())):
        raise WorkspaceError(
            f"{root} was not made by the demo", "Choose another folder with --out, or move this one away."
        )
    root.mkdir(parents=True, exist_ok=True)
    with marker.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WorkspaceError(
                f"another demo is using {root}", "Wait for it to end, or choose another folder with --out."
            ) from error
        _remove_earlier_run(root)
        for name in _FOLDERS:
            (root / name).mkdir()
        yield


def _remove_earlier_run(root: Path) -> None:
    for name in _FOLDERS:
        folder = root / name
        # A link was not made by the demo, and what it leads to even less.
        if folder.is_symlink():
            raise WorkspaceError(f"{folder} is a link", "The demo did not make it: move it away.")
        if folder.exists():
            shutil.rmtree(folder)
    for name in _FILES:
        (root / name).unlink(missing_ok=True)
