"""What CI says at its end."""

import runpy
from collections.abc import Sequence
from pathlib import Path

import pytest

CI = Path(__file__).parents[3] / ".ci"
REPORT = runpy.run_path(str(CI / "report.py"))
PACE = runpy.run_path(str(CI / "pace.py"))
Step, Case = REPORT["Step"], REPORT["Case"]
JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="3">
  <testcase classname="tests.unit.test_a" name="test_first" time="0.250" />
  <testcase classname="tests.unit.test_a" name="test_failed" time="12.5"><failure message="no" /></testcase>
  <testcase classname="tests.unit.test_a" name="test_left_out" time="0.001"><skipped message="not here" /></testcase>
</testsuite></testsuites>"""


def _run_with(folder: Path, *steps: str, paces: Sequence[float] = (1.0,)) -> Path:
    (folder / "steps").write_text("".join(f"{step}\n" for step in steps), "utf-8")
    (folder / "paces").write_text("".join(f"{pace:.2f}\n" for pace in paces), "utf-8")
    return folder


def test_tests_that_ran_are_read() -> None:
    assert REPORT["tests_of"](JUNIT) == [
        Case("tests.unit.test_a::test_first", 0.25),
        Case("tests.unit.test_a::test_failed", 12.5),
    ]


def test_a_step_has_the_tests_of_all_its_reports(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "1.xml").write_text(JUNIT, "utf-8")
    (tmp_path / "test" / "2.xml").write_text(JUNIT.replace("test_a", "test_b"), "utf-8")
    setup, test = REPORT["steps_in"](_run_with(tmp_path, "setup\t12\t180", "test\t40\t"))
    assert setup == Step("setup", 12, 180)
    assert (test.seconds, test.budget, len(test.tests)) == (40, None, 4)


def test_the_table_has_a_line_for_each_step() -> None:
    steps = [
        Step("setup", 8, 180),
        Step("test", 1100, 720, (Case("a", 1.0), Case("b", 2.0))),
        Step("cluster", 300, None),
    ]
    assert REPORT["table"](steps).splitlines() == [
        "step     seconds  budget  tests",
        "setup          8     180",
        "test        1100     720      2  over its budget",
        "cluster      300",
    ]


@pytest.mark.parametrize(("seconds", "over"), [(60, False), (90, False), (91, True)])
def test_half_as_much_again_is_forgiven(seconds: int, over: bool) -> None:
    assert Step("charts", seconds, 60).is_over is over


def test_the_slowest_tests_come_first_whatever_step_they_are_of() -> None:
    steps = [Step("test", 9, 9, (Case("quick", 0.5), Case("slow", 30.0))), Step("e2e", 9, 9, (Case("slower", 31.25),))]
    assert REPORT["slowest"](steps, 2).split() == ["31.2", "e2e", "slower", "30.0", "test", "slow"]


def test_a_run_over_its_budget_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert REPORT["main"](_run_with(tmp_path, "setup\t180\t180", "cluster\t9999\t")) == 0
    assert "1.5 times" not in capsys.readouterr().out
    assert REPORT["main"](_run_with(tmp_path, "setup\t271\t180", "demo\t10\t120")) == 1
    assert capsys.readouterr().out.endswith("More than 1.5 times its budget: setup\n")


@pytest.mark.parametrize(("paces", "pace"), [((0.8, 0.9), 1), ((1.1, 1.75), 1.75), ((1.2, 1.0), 1.2), ((9.0,), 2)])
def test_a_budget_grows_with_what_the_machine_takes_at_its_slowest_within_limits(
    paces: Sequence[float], pace: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Half as much again of what the budget is there, and a second more.
    within, over = round(150 * pace), round(150 * pace) + 1
    assert REPORT["main"](_run_with(tmp_path, f"charts\t{within}\t100", "cluster\t9\t", paces=paces)) == 0
    assert ("This machine is slow" in capsys.readouterr().out) is (pace > 1)
    assert REPORT["main"](_run_with(tmp_path, f"charts\t{over}\t100", paces=paces)) == 1


def test_the_pace_is_told_as_the_report_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PACE["tell"]([1.0, 3.1, 1.26])
    told = capsys.readouterr().out
    assert told == "1.26\n"
    (tmp_path / "paces").write_text(told + "1.10\n", "utf-8")
    assert REPORT["pace_in"](tmp_path) == 1.26


def test_what_the_pace_is_taken_by_takes_time() -> None:
    assert PACE["compile_all"]([__file__]) > 0
