from __future__ import annotations

from pathlib import Path

import pytest

from lakestream_demo.errors import WorkspaceError
from lakestream_demo.workspace import MARKER, fresh_workspace


def test_a_run_finds_nothing_of_the_run_before(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    with fresh_workspace(root) as first:
        (first.lake / "table").mkdir()
        first.result.write_text("{}")
        first.progress("json").write_text("{}\n")
    with fresh_workspace(root) as second:
        assert (root / MARKER).is_file()
        assert all(path.is_dir() and not any(path.iterdir()) for path in root.iterdir() if path.name != MARKER)
        assert second.lake.is_dir()


def test_what_others_put_into_the_folder_stays(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    with fresh_workspace(root):
        pass
    (root / "notes.txt").write_text("mine")
    with fresh_workspace(root):
        assert (root / "notes.txt").read_text() == "mine"


def test_a_folder_that_the_demo_did_not_make_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(WorkspaceError, match="was not made by the demo"), fresh_workspace(tmp_path):
        pass
    assert (tmp_path / "lake").is_dir()


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "demo"
    file.write_text("mine")
    with pytest.raises(WorkspaceError, match="was not made by the demo"), fresh_workspace(file):
        pass
    assert file.read_text() == "mine"


@pytest.mark.parametrize("inner", ["file/demo", "file/deep/demo"])
def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, inner: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(WorkspaceError, match=f"{tmp_path / inner} cannot be used: .*Not a directory"),
        fresh_workspace(tmp_path / inner),
    ):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    root, other = tmp_path / "demo", tmp_path / "other"
    with fresh_workspace(root) as workspace:
        workspace.lake.rmdir()
        other.mkdir()
        (other / "precious").write_text("mine")
        workspace.lake.symlink_to(other)
    with pytest.raises(WorkspaceError, match="is a link"), fresh_workspace(root):
        pass
    assert (other / "precious").exists()


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    with fresh_workspace(root) as first:
        first.result.write_text("{}")
        with pytest.raises(WorkspaceError, match="another demo is using"), fresh_workspace(root):
            pass
        assert first.result.exists()
