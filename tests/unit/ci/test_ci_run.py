"""The script of CI, with a Makefile and a cluster kit that only say what they are told to do."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[3] / ".ci"
MAKEFILE = """
setup demo charts clean:
	@echo $@ $(SPARK_OPERATOR_CHART)
test e2e:
	@echo '<testsuites><testcase classname="a" name="of_$@" time="7"/></testsuites>' > $(CI_JUNIT_FOLDER)/1.xml
	@echo '==== 1 passed in 0.01s ===='
"""
KIT = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
case $1 in env) echo export KUBECONFIG=here;; chart) echo a-chart.tgz;; esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    shutil.copytree(CI, folder / ".ci")
    (folder / "Makefile").write_text(MAKEFILE, "utf-8")
    (folder / ".ci" / "pace.py").write_text("print(1.25)\n", "utf-8")
    return folder


def _kit(checkout: Path, text: str = KIT) -> Path:
    kit = checkout.parent / "shared" / "cluster" / "cluster"
    kit.parent.mkdir(parents=True)
    kit.write_text(text, "utf-8")
    kit.chmod(0o755)
    return kit.parent / "asked"


def _started(checkout: Path) -> subprocess.Popen[str]:
    # Whoever is in the background of a shell ignores SIGINT, and so would all that it starts: it would be waited for.
    command = ["env", "--default-signal=INT", checkout / ".ci" / "run"]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _run(checkout: Path) -> tuple[int, str]:
    with _started(checkout) as run:
        output, _ = run.communicate()
        return run.returncode, output


def test_a_run_without_the_kit_says_so(checkout: Path) -> None:
    status, output = _run(checkout)
    assert status == 0
    assert "There is no cluster kit beside this checkout" in output
    assert "e2e\n" not in output


def test_a_run_ends_with_closing_lines_and_the_table(checkout: Path) -> None:
    asked = _kit(checkout)
    status, output = _run(checkout)
    assert status == 0
    closing, table = output.split("\nstep ")
    assert closing.count("    ==== 1 passed in 0.01s ====") == 2
    assert "    charts a-chart.tgz\n" in closing
    steps = {line.split(" ")[0] for line in table.splitlines()[1:8]}
    assert steps == {"setup", "kit", "test", "demo", "cluster", "charts", "e2e"}
    assert "This machine is slow: the budgets are 1.25 times those in `.ci/run`.\n" in closing
    assert "7.0  test  a::of_test\n" in table
    assert "7.0  e2e  a::of_e2e\n" in table
    said = asked.read_text("utf-8").splitlines()
    assert [line for line in said if line.startswith("image build")] == [
        f"image build -q -t lakestream/{image}:dev -f images/{image}/Dockerfile ."
        for image in ("spark", "operator", "loadgen", "localkinesis")
    ]
    assert said[-1] == "down"


def test_a_step_that_fails_ends_the_run(checkout: Path) -> None:
    asked = _kit(checkout)
    (checkout / "Makefile").write_text(MAKEFILE.replace("@echo $@", "@test $@ != demo && echo $@"), "utf-8")
    status, output = _run(checkout)
    assert status != 0
    assert "charts" not in output
    assert asked.read_text("utf-8").splitlines()[-1] == "down"


def test_a_cluster_that_cannot_be_made_fails_the_run_with_its_log(checkout: Path) -> None:
    asked = _kit(checkout, KIT + 'test "$1" != up || { echo no such cgroup; exit 1; }\n')
    status, output = _run(checkout)
    assert status != 0
    assert "What was to be done on the cluster failed; the end of what was said:\nno such cgroup\n" in output
    assert asked.read_text("utf-8").splitlines()[-1] == "down"


def test_an_end_to_end_test_that_fails_ends_the_run_with_its_log(checkout: Path) -> None:
    asked = _kit(checkout)
    (checkout / "Makefile").write_text(
        f"{MAKEFILE}\t@test $@ != e2e || {{ echo no executor came; exit 1; }}\n", "utf-8"
    )
    status, output = _run(checkout)
    assert status != 0
    assert "no executor came\n" in output
    assert "demo" not in output
    assert asked.read_text("utf-8").splitlines()[-1] == "down"


def test_a_run_that_is_ended_leaves_nothing_running(checkout: Path) -> None:
    asked = _kit(checkout, KIT + 'test "$1" != up || exec sleep 600\n')
    (checkout / "Makefile").write_text(
        "test: left\nleft:\n\t@sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo pids $$$$ $$!; exec sleep 600'\n"
        + MAKEFILE,
        "utf-8",
    )
    with _started(checkout) as run:
        assert run.stdout
        pids = next(line.split()[1:] for line in run.stdout if line.startswith("pids "))
        # What has been killed may take a moment to die, and then others may get its number.
        started = [os.pidfd_open(int(pid)) for pid in pids]
        run.send_signal(signal.SIGTERM)
        run.communicate()
    assert run.returncode == 128 + signal.SIGTERM
    assert asked.read_text("utf-8").splitlines()[-1] == "down"
    assert len(started) == 2
    for process in started:
        assert select.select([process], [], [], 60)[0], "it still runs"
        os.close(process)
