"""The `lakestream` command, as far as it needs nothing beside itself."""

import io
import os
import runpy
import subprocess
import sys
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from lakestream.main import app
from lakestream_api import __version__

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "orders.yaml"


def test_the_release_is_told() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"lakestream {__version__}\n")


@pytest.mark.parametrize(
    ("old", "new", "status", "said"),
    [
        ("", "", 0, "LakeStream orders is valid; writers: hudi (s3a://"),
        (
            "order_id string",
            "order_id strin",
            0,
            "spec.schema and spec.transform, has not been asked",
        ),
        ("interval: 10s", "interval: '10'", 2, "spec.trigger.interval: '10' is not a duration"),
        ("writers:", "wirters:", 2, "spec.wirters: is not a field; did you mean writers?"),
    ],
)
def test_a_document_is_checked(tmp_path: Path, old: str, new: str, status: int, said: str) -> None:
    text = EXAMPLE.read_text("utf-8")
    assert old in text
    document = tmp_path / "orders.yaml"
    document.write_text(text.replace(old, new, 1), "utf-8")
    result = CliRunner().invoke(app, ["validate", "-f", str(document)])
    assert said in result.output
    assert result.exit_code == status


def served(text: str, namespace: str) -> dict[str, Any]:
    """As an API server has it, of a newer release."""
    document: dict[str, Any] = yaml.safe_load(text)
    document["metadata"] |= {"namespace": namespace, "uid": "1-2-3", "resourceVersion": "7"}
    document["spec"]["added"] = True
    return document | {"status": {"phase": "Running"}}


def test_without_a_standard_input_there_is_no_document_on_it() -> None:
    """As of a process that was started with it closed, of which Python has none."""
    command = [sys.executable, "-m", "lakestream.main", "validate", "-f", "-"]
    closed = ["/bin/sh", "-c", '"$@" <&-', "sh", *command]
    done = subprocess.run(closed, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "lakestream: - cannot be read as text: stdin is closed\n")


def test_all_that_a_cluster_has_is_checked_at_once() -> None:
    """As before an upgrade: `kubectl get lks -A -o yaml | lakestream validate -f -`."""
    good = EXAMPLE.read_text("utf-8")
    items = [served(good, "a"), served(good.replace("interval: 10s", "interval: '10'"), "b"), served(good, "c")]
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=listed)
    assert result.stdout.count("is valid; writers: ") == 2
    assert "LakeStream a/orders is valid" in result.stdout
    assert "lakestream: b/orders: spec.trigger.interval: '10' is not a duration" in result.stderr
    assert result.exit_code == 2


def test_a_cluster_without_lakestreams_has_none_that_is_wrong() -> None:
    listed = 'apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: ""\n'
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=listed)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "there are no LakeStreams in the list\n", "")


def test_what_stands_beside_a_lakestream_in_its_file_is_passed_over() -> None:
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: lake}}\n---\n{EXAMPLE.read_text('utf-8')}"
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=text)
    assert "LakeStream orders is valid" in result.stdout
    assert result.exit_code == 0


def test_a_misspelled_kind_is_not_passed_over_beside_others() -> None:
    """The API server would refuse it."""
    good = EXAMPLE.read_text("utf-8")
    wrong = good.replace("kind: LakeStream", "kind: Lakestream").replace("name: orders", "name: returns", 1)
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=f"{good}---\n{wrong}")
    assert "LakeStream orders is valid" in result.stdout
    assert "lakestream: returns: kind: is \"Lakestream\"; choose 'LakeStream'" in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text has 0 documents; give one LakeStream"),
        ("kind: Namespace\n---\nkind: Secret", "the text has 2 documents; give one LakeStream"),
        ("kind: List\nitems: {a: 1}", "kind: is \"List\"; choose 'LakeStream'"),
        ("kind: LakeStream\n---\nkind: LakeStream\nmetadata: [1]", "lakestream: one without a name: spec: is required"),
    ],
)
def test_a_text_without_a_lakestream_is_told_so(text: str, said: str) -> None:
    result = CliRunner().invoke(app, ["validate", "-f", "-"], input=text)
    assert said in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("command", "word"), [("query", "--sql"), ("table", "compact"), ("quarantine", "replay"), ("backfill", "cancel")]
)
def test_the_image_has_the_data_planes_commands_though_no_package_announces_any(
    command: str, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lakestream.main.entry_points", lambda group: EntryPoints())
    monkeypatch.setattr(sys, "argv", ["lakestream", command, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "images" / "spark" / "main.py"))
    assert not ended.value.code
    assert word in capsys.readouterr().out


def test_to_be_told_of_the_commands_is_to_wait_for_no_library_of_theirs() -> None:
    asked = "import sys; from lakestream.main import app; app(['--help'], standalone_mode=False)"
    told = f"{asked}; print(*{{'boto3', 'duckdb', 'locust', 'numpy', 'pyarrow', 'pyspark'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert "query" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_no_command_offers_a_completion_of_its_own() -> None:
    """The shell would take it for that of all of `lakestream`."""
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    context = commands.make_context("lakestream", [], resilient_parsing=True)
    names = commands.list_commands(context)
    assert {"ingest", "kinesis", "query", "simulate"} <= {*names}
    options = [(name, one.opts) for name in names for one in commands.get_command(context, name).params]
    assert [name for name, opts in options if "--install-completion" in opts] == []


def test_a_document_that_is_no_text_is_told_so(tmp_path: Path) -> None:
    document = tmp_path / "orders.parquet"
    document.write_bytes(b"PAR1\xff\xfe")
    result = CliRunner().invoke(app, ["validate", "-f", str(document)])
    assert f"lakestream: {document} cannot be read as text: " in result.stderr
    assert result.exit_code == 2


def test_each_of_several_files_is_validated(tmp_path: Path) -> None:
    """As kubectl takes them: of the last one alone nobody would think."""
    broken, empty = tmp_path / "broken.yaml", tmp_path / "empty.yaml"
    broken.write_text(EXAMPLE.read_text("utf-8").replace("interval: 10s", "interval: 1ms"), "utf-8")
    empty.write_text("")
    result = CliRunner().invoke(app, ["validate", "-f", str(broken), "-f", str(EXAMPLE)])
    assert result.exit_code == 2
    assert "orders is valid" in result.stdout
    assert "lakestream: orders: spec.trigger.interval: " in result.stderr
    result = CliRunner().invoke(app, ["validate", "-f", str(EXAMPLE), "-f", str(empty)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"lakestream: {empty}: ")


class InParts(io.RawIOBase):
    """A file that takes a few bytes at a time, as the system does of a pipe or a disk that is about to be full."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.written += bytes(data[:7])
        return min(7, len(data))


def test_all_is_written_though_stdout_is_unbuffered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with PYTHONUNBUFFERED=1, which images have."""
    raw = InParts()
    stdout = io.TextIOWrapper(raw, "utf-8", write_through=True)  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdout", stdout)
    app(["validate", "-f", str(EXAMPLE)], standalone_mode=False)
    assert raw.written.decode().endswith("has not been asked: a start does.\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_the_machine_refuses_is_told_without_a_traceback(unbuffered: str) -> None:
    command = [sys.executable, "-m", "lakestream.main", "validate", "-f", str(EXAMPLE)]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "lakestream: No space left on device"
    assert "Traceback" not in done.stderr


def test_more_task_slots_than_spark_can_count_are_refused() -> None:
    done = CliRunner().invoke(app, ["ingest", "-f", str(EXAMPLE), "--writer", "hudi", "--cores", "3000000000"])
    assert done.exit_code == 2
    assert "4096" in done.stderr


def test_a_python_without_docstrings_is_told_what_it_lacks() -> None:
    """PySpark fails as it is imported, with a TypeError."""
    command = [sys.executable, "-OO", "-m", "lakestream.main", "validate", "-f", str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "do without docstrings" in done.stderr
