"""How benchmarks are found and run."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

import lakestream_bench
from lakestream_bench.__main__ import benchmarks, main
from lakestream_bench._options import out_file


def test_a_benchmark_is_a_module_that_can_be_run() -> None:
    assert "producer" in benchmarks()
    assert "__main__" not in benchmarks()


@pytest.mark.parametrize("name", benchmarks())
def test_every_benchmark_is_in_the_table_of_the_page(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text("utf-8")
    assert f"\n| `{name}` | " in page


@pytest.mark.parametrize("name", benchmarks())
def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", [name, "--out", str(tmp_path / "file" / "figures.json")])
    with pytest.raises(SystemExit) as ended:
        import_module(f"lakestream_bench.{name}").main()
    assert ended.value.code == 2
    assert "--out: " in (told := capsys.readouterr().err)
    assert "cannot be written: " in told


@pytest.mark.parametrize(
    ("name", "option", "given", "wanted"),
    [
        ("readers", "--batches", "1", "a whole number from 2 on"),
        ("readers", "--again", "0", "a whole number from 1 on"),
        ("rivals", "--batches", "0", "a whole number from 1 on"),
        ("rivals", "--kills", "-1", "a whole number from 0 on"),
        ("planning", "--rounds", "0", "a whole number from 1 on"),
        ("producer", "--users", "many", "a whole number from 1 on"),
        ("producer", "--seconds", "0", "a number above zero"),
        ("producer", "--seconds", "long", "a number above zero"),
        ("kinesis_servers", "--seconds", "nan", "a number above zero"),
    ],
)
def test_a_number_that_makes_no_sense_is_told_before_anything_is_measured(
    name: str, option: str, given: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, option, given])
    with pytest.raises(SystemExit) as ended:
        import_module(f"lakestream_bench.{name}").main()
    assert ended.value.code == 2
    assert f"argument {option}: give {wanted}, got {given}" in capsys.readouterr().err


def test_the_folder_of_a_file_is_made_and_the_file_only_with_figures(tmp_path: Path) -> None:
    out = out_file(str(tmp_path / "a" / "b" / "figures.json"))
    assert list(out.parent.iterdir()) == []
    out.write_text("{}")
    assert out_file(str(out)).read_text() == "{}"


def test_an_unknown_benchmark_is_answered_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["produce"])
    assert ended.value.code == 2
    assert "there is no benchmark produce; choose from: " in capsys.readouterr().err


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_that_starts_processes_leaves_none(name: str) -> None:
    program = (Path(lakestream_bench.__path__[0]) / f"{name}.py").read_text("utf-8")
    words = ("_ingestion", "_kinesis_contenders", "build_session", "compare.run", "subprocess")
    starts = any(word in program for word in words)
    assert ("with no_process_left():" in program) is starts
