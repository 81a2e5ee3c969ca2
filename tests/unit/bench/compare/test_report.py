"""The report's pages: whole, from nothing outside, and with the sums of the model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream_bench._ordeals import Ordeal, Ordeals
from lakestream_bench.compare.cli import _chosen, app
from lakestream_bench.compare.costs_page import SCRIPT, model
from lakestream_bench.compare.findings import find
from lakestream_bench.compare.markdown import markdown
from lakestream_bench.compare.method import SPARK
from lakestream_bench.compare.money import Load, bill, load_prices, rivals
from lakestream_bench.compare.page import page
from lakestream_bench.compare.report import write_report
from lakestream_bench.compare.results import Beside
from lakestream_bench.compare.scenarios import SCENARIOS
from lakestream_bench.rivals import Figure, Rivalry
from lakestream_bench.scalability.figures import Capacity, Demand, Measured, Scalability, Step

from . import made

PRICES = load_prices()
FOUND = find(made.results(), {}, PRICES)
PAGE = page(made.results(), FOUND, PRICES)
_VOID = {"meta", "input", "br", "line", "circle"}


class _Reader(HTMLParser):
    """Fails at an element that is not closed where it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.outside += [f"{name}={value}" for name, value in attrs if name == "src" or (name, tag) == ("href", "link")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    reader = _Reader()
    reader.feed(PAGE)
    assert reader.open == []
    assert reader.outside == []
    assert "A <fast> one" in reader.text


def test_the_page_says_what_is_wrong_and_what_has_no_figures() -> None:
    reader = _Reader()
    reader.feed(PAGE)
    assert "No figures of repetition 3: Hudi merge-on-read: the JVM ended with <1>" in reader.text
    assert "What plain JSON answers" in reader.text
    assert "9 batches behind" in reader.text
    assert (
        "Hudi merge-on-read, incremental, Spark, stock session: a wrong answer, so not timed. Right is 7" in reader.text
    )
    assert "an assumption" in reader.text


def test_a_price_may_come_from_a_contract() -> None:
    first, *others = PRICES.prices
    own = first.model_copy(update={"source": "our contract, <2026>"})
    text = page(made.results(), FOUND, PRICES.model_copy(update={"prices": (own, *others)}))
    assert "<td>our contract, &lt;2026&gt;</td>" in text


def test_a_load_that_nobody_can_have_is_refused_before_anything_is_measured() -> None:
    done = CliRunner().invoke(app, ["--events-per-second", "inf"])
    assert done.exit_code == 2
    assert "events_per_second must be a number" in " ".join(re.sub("[^a-z_ ]", " ", done.output).split())


def test_plots_come_before_tables() -> None:
    assert PAGE.index("<svg") < PAGE.index("<table")
    assert "NaN" not in PAGE
    assert "inf" not in PAGE.replace("info", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_s_script_and_the_model_come_to_the_same_sums() -> None:
    loads = [
        Load(),
        Load(events_per_second=7, queries_per_day=90_000, retention_days=3, utilization=0.3),
        Load(events_per_second=9_000, event_bytes=30_000, shards=2),
    ]
    for load in loads:
        (found,) = find(made.results(), asdict(load), PRICES)
        program = (
            f"{SCRIPT}const model = {json.dumps(model(found, PRICES))};"
            # What follows from the rest has to be worked out anew.
            "const inputs = derived({...model.inputs, on_demand: -1, billed_kibibytes: -1, billed_shards: -1});"
            "const named = name => model.arms.find(arm => arm.name === name);"
            "console.log(JSON.stringify({stream: streamModes(model.stream, inputs), rivals: rivals(model.cpu, inputs), "
            "bills: model.arms.map(arm => bill(arm, inputs)), evens: "
            f"{json.dumps([[e.challenger, e.holder] for e in found.money.break_evens])}"
            ".map(([one, other]) => breakEven(named(one), named(other), model.inputs))}));"
        )
        done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        assert told["stream"] == pytest.approx(asdict(found.money.stream))
        ours = next(arm.measured for arm in found.arms if arm.arm == "mor")
        assert told["rivals"] == pytest.approx([rival.dollars for rival in rivals(load, PRICES, ours)])
        assert told["evens"] == [str(even) for even in found.money.break_evens]
        for arm, sums in zip(found.arms, told["bills"], strict=True):
            expected = bill(arm.measured, load, PRICES)
            assert (sums["keeping"], sums["asking"]) == pytest.approx((expected.keeping, expected.asking))
            assert sums["by"] == pytest.approx(dict(expected.by_source))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_what_pods_cost_that_wait_follows_the_price_that_is_changed() -> None:
    assert "<span data-pods>$89</span> a month however little comes" in PAGE
    program = (
        f"{SCRIPT}const cells = {{}}, cell = name => cells[name] ||= {{style: {{}}}};"
        f"const model = {{textContent: JSON.stringify({json.dumps(model(FOUND[0], PRICES))})}};"
        "show({querySelector: name => name === 'script' ? model : cell(name), querySelectorAll: name => "
        "({input: [{name: 'vcpu_hour', value: '1'}], '[data-rival]': [cell(0), cell(1), cell(2)]})[name] || []});"
        "console.log(cells['[data-pods]'].textContent);"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout == "$2,190\n"


def test_a_run_too_short_for_what_the_report_tells_says_so() -> None:
    few = tuple(replace(one, batches=9) for one in made.results().requests)
    found = replace(made.results(), requests=few)
    assert "so few that no compaction is among them" in page(found, find(found, {}, PRICES), PRICES)
    assert "so few that no compaction is among them" not in PAGE
    readers = SCENARIOS["readers"]
    trials = tuple(made.trial(arm, scenario=readers) for arm in made.SPEED)
    found = replace(made.results(), setup=made.setup(readers), trials=trials)
    assert "Nobody asked while batches were written" in page(found, find(found, {}, PRICES), PRICES)
    assert "Nobody asked" not in PAGE


def test_numbers_of_the_form_have_all_their_digits() -> None:
    (found,) = find(made.results(), {"event_bytes": 1_048_576, "utilization": 0.123456789}, PRICES)
    text = page(made.results(), [found], PRICES)
    assert 'name="event_bytes" value="1048576"' in text
    assert 'name="utilization" value="0.123456789"' in text


@pytest.mark.parametrize("first", ["readers", "no figures"])
def test_the_form_works_where_the_first_scenario_has_none(first: str) -> None:
    readers = SCENARIOS["readers"]
    other = tuple(made.trial(arm, scenario=readers) for arm in made.SPEED) if first == "readers" else ()
    found = replace(made.results(), setup=made.setup(readers, made.SCENARIO))
    found = replace(found, trials=other + found.trials)
    text = page(found, find(found, {}, PRICES), PRICES)
    assert text.count("function show(") == 1
    assert text.index("function show(") > text.rindex('<section class="costs">')


def test_every_input_of_the_sums_can_be_changed_on_the_page() -> None:
    names = set(re.findall(r'<input [^>]*name="(\w+)"', PAGE))
    assert names == {one.name for one in fields(Load)} | {price.name for price in PRICES.prices}


def test_markdown_has_a_column_for_each_arm() -> None:
    text = markdown(made.results(), FOUND)
    assert "| | JSON | Hudi copy-on-write | Hudi merge-on-read |" in text
    assert all(line.count("|") == 5 for line in text.splitlines() if line.startswith("|"))
    assert "costs less than" in text
    assert "- Hudi merge-on-read, incremental, Spark, stock session: a wrong answer" in text


def test_what_was_asked_while_batches_were_written_is_told_without_bills() -> None:
    scenario = SCENARIOS["readers"]
    torn = Beside("aggregate", SPARK, 0.4, asked=7, torn=3, failed=1, error="File <gone>")
    trials = tuple(replace(made.trial(arm, scenario=scenario), beside=(torn,)) for arm in ("json", "mor"))
    results = replace(made.results(), setup=made.setup(scenario), trials=trials)
    found = find(results, {}, PRICES)
    text = page(results, found, PRICES)
    assert "Asked while batches were written" in text
    assert "File &lt;gone&gt;" in text
    assert "<form" not in text
    told = markdown(results, found)
    assert "while batches were written: of 7 answers 3 of no whole batch, 1 failed; 0.40 s" in told
    assert "$" not in told


def test_every_number_lies_beside_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_report(made.results(), {}, PRICES, tmp_path) == 1
    findings = json.loads((tmp_path / "findings.json").read_text())
    assert findings[0]["arms"][0]["rows_per_second"]["median"] == FOUND[0].arms[0].rows_per_second.median
    assert (tmp_path / "report.html").read_text() == PAGE
    assert "half-updates" in capsys.readouterr().out


def test_a_report_is_made_anew_for_another_load_without_measuring(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    found = made.results()
    replace(found, trials=tuple(trial for trial in found.trials if not trial.failure)).save(file)
    done = CliRunner().invoke(app, ["--report-only", "--out", str(tmp_path), "--events-per-second", "7"])
    assert done.exit_code == 0, done.output
    load = json.loads((tmp_path / "findings.json").read_text())[0]["money"]["load"]
    assert load["events_per_second"] == 7


def test_a_report_alone_takes_no_option_of_what_is_measured(tmp_path: Path) -> None:
    made.results().save(tmp_path / "results.json")
    options = ["--report-only", "--out", str(tmp_path), "--arm", "cow", "--all", "--no-requests", "--size", "2"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 2
    assert "leaveout--size,--arm,--all,--requests" in re.sub(r"[\s│]", "", done.output)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace('"arm": "mor"', '"arm": "hudi"'), "of another version, which compared hudi"),
        (lambda text: text.replace('"kind": "changes"', '"kind": "net"'), "of another version, which compared net"),
        (
            lambda text: text.replace('"cpu"', '"cpus"'),
            "those of another version: trials.0.batches.0.cpu: Field required",
        ),
    ],
)
def test_results_of_another_version_are_told_as_such(tmp_path: Path, change: Callable[[str], str], says: str) -> None:
    file = tmp_path / "results.json"
    made.results().save(file)
    file.write_text(change(file.read_text()))
    done = CliRunner().invoke(app, ["--report-only", "--out", str(tmp_path)])
    assert done.exit_code == 2
    told = re.sub(r"[\s│]", "", done.output)
    assert says.replace(" ", "") in told
    assert len(told) < 1_000


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    made.results().save(tmp_path / "results.json")
    (tmp_path / "report.html").mkdir()
    done = CliRunner().invoke(app, ["--report-only", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "report.html" in re.sub(r"[\s│]", "", done.output)


def test_an_option_given_twice_counts_once() -> None:
    chosen, arms = _chosen(["wide", "wide"], ["mor", "mor"], everything=False)
    assert ([one.name for one in chosen], arms) == (["wide"], ("mor",))


def test_scalability_is_in_the_report_if_its_figures_are_there(tmp_path: Path) -> None:
    made.results().save(tmp_path / "results.json")
    options = ["--report-only", "--out", str(tmp_path)]
    CliRunner().invoke(app, options)
    assert "scalability.json" not in (tmp_path / "report.html").read_text()
    kept = Step(2_000.0, 1_990.0, 9, 4.0, 0.0, kept=True)
    figures = Scalability(
        *("now", 2, 0.0, "mor", 2, 10.0, 15.0),
        (Measured(1, (kept,)), Measured(2, (replace(kept, kept=False),))),
        "a <model>",
        (Capacity(1, 1_500.0),),
        (Demand(1, 1_000.0, 1),),
    )
    figures.save(tmp_path / "scalability.json")
    CliRunner().invoke(app, options)
    reader = _Reader()
    reader.feed((tmp_path / "report.html").read_text())
    assert reader.open == []
    assert "a <model>" in reader.text
    text = (tmp_path / "report.md").read_text()
    assert "| 1 | 2,000 | 1,500 |" in text
    assert "| 2 | below 2,000 | – |" in text
    assert "Modelled, not measured: 1 slots for 1 full shards, 1,000 records/s." in text
    (tmp_path / "scalability.json").write_text("{}")
    done = CliRunner().invoke(app, options)
    assert (done.exit_code, "lakestream_bench.scalability" in re.sub(r"[\s│]", "", done.output)) == (2, True)


def test_rivals_are_in_the_report_if_their_figures_are_there(tmp_path: Path) -> None:
    made.results().save(tmp_path / "results.json")
    loop = Ordeal("loop", Ordeals.RESHARDS, 2, 60, 0, 50, lost=1_234, outdated=0, doubled=0, undeleted=0)
    rivalry = Rivalry("now", 2, 10, 3, (Figure("ours", 900.0, 1.5, 70.0),), (loop,), {"<files>": "log"})
    (tmp_path / "rivals.json").write_text(json.dumps(asdict(rivalry)))
    CliRunner().invoke(app, ["--report-only", "--out", str(tmp_path)])
    reader = _Reader()
    reader.feed((tmp_path / "report.html").read_text())
    assert reader.open == []
    assert "2 reshards" in reader.text
    assert "<files> did not get to the end" in reader.text
    assert '<span class="miss">1,234</span>' in (tmp_path / "report.html").read_text()
    text = (tmp_path / "report.md").read_text()
    assert "| a loop by hand: boto3, createDataFrame, append | 2 reshards | 1,234 | 0 | 0 | 0 | 0 |" in text
    assert "**Did not get to the end:** <files>" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--arm", "iceberg"], "there is no arm iceberg; choose from: json, cow, mor"),
        (["--scenario", "all"], "there is no scenario all; choose from: half-updates"),
        (["--report-only", "--out", "nowhere"], "nowhere/results.json"),
    ],
)
def test_what_is_not_there_is_named(options: list[str], says: str) -> None:
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 2
    # Typer breaks lines, and frames them.
    assert says.replace(" ", "") in re.sub(r"[\s│]", "", done.output)
