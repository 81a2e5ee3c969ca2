"""Runs one scenario: each life of a driver, the drain, the audit. A case that fails keeps its folder."""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from chaos.audit import (
    Found,
    Lake,
    Verdict,
    judge,
    judge_seen,
    lines_of,
    misnamed,
    read_json,
    read_named,
    read_quarantine,
    read_seen,
    read_told,
    rows_of,
    services_of,
)
from chaos.driver import FAILED, STORAGE, Driver, crowding
from chaos.faults import Fault
from chaos.faults.endings import START_SECONDS
from chaos.schedule import Life, Scenario
from chaos.world import WRITER, Tools, World, world

UNDER_FAULTS_SECONDS = 60.0
"""That a driver gets for its next batch while something is wrong; then the faults are ended."""
STILL_SECONDS = 240.0
"""Without a batch, and with nothing wrong: it is stuck."""
DRAIN_SECONDS = 2400.0
"""For all of a drain, on a machine of its own."""
BURIAL_SECONDS = 60.0
"""In which the processes of dead drivers have to be gone."""
_MANY = 1_000_000
_CROSSED = "was written by an earlier driver, just before it saw"
"""Said by one whose predecessor had a plan or a commit on its way; whoever restarts it goes on."""


@dataclass
class Result:
    """What came of a scenario."""

    seed: str
    setting: str
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    verdict: Verdict = field(default_factory=Verdict)
    faults: list[str] = field(default_factory=list)
    """What must not have happened, beside what the verdict counts."""

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not self.faults

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "counts": dict(self.counts), "ok": self.ok}


def run_case(scenario: Scenario, folder: Path, tools: Tools, lake: Lake) -> Result:
    """Run a scenario in an empty folder.

    Args:
        scenario: what happens.
        folder: for all that it makes; `verdict.json` and `schedule.json` say afterwards how it went.
        tools: of the run.
        lake: reads tables.
    """
    result = Result(scenario.seed, str(scenario.setting))
    began = time.monotonic()
    (folder / "schedule.json").write_text(json.dumps(scenario.to_json(), indent=2) + "\n")
    try:
        with world(scenario.setting, folder, tools, Random(scenario.seed)) as made:
            result.counts, result.faults = made.counts, made.faults
            _live(scenario, made)
            made.readings.repeat()
            _audit(made, lake, result)
    except Exception:  # noqa: BLE001 - a case that cannot be judged is a failure, and its folder says why
        result.faults.append(f"the case broke off: {traceback.format_exc()}")
    result.seconds = round(time.monotonic() - began, 1)
    (folder / "verdict.json").write_text(json.dumps(result.to_json(), indent=2, default=str) + "\n")
    for remnant in ("scratch", "spark"):
        shutil.rmtree(folder / remnant, ignore_errors=True)
    return result


def _live(scenario: Scenario, made: World) -> None:
    made.producer.burst()
    made.producer.start()
    try:
        for number, life in enumerate(scenario.lives, 1):
            made.tell(f"life {number}")
            _live_once(made, life)
            made.calm()
    finally:
        made.calm()
        made.producer.stop()
    if made.driver is not None:
        made.driver.end()
    made.producer.burst()
    made.clock_offset = made.clock_ahead
    made.document["spec"]["trigger"]["maxRecordsPerBatch"] = _MANY
    _drain(made)


def _live_once(made: World, life: Life) -> None:
    for fault in life.before:
        _strike(made, fault)
    if life.ending.crash_at is not None and made.driver is not None:
        # It has to be started to die at a step.
        made.driver.end()
    driver = made.driver or made.start(crash_at=life.ending.crash_at)
    done = driver.batches
    for after, fault in life.during:
        if not _await_batches(made, driver, done + after):
            return
        _strike(made, fault)
    if life.ending.crash_at is None and not _await_batches(made, driver, done + life.batches):
        return
    _strike(made, life.ending)
    if life.ending.crash_at is not None:
        _judge_end(made, driver)


def _strike(made: World, fault: Fault) -> None:
    made.tell(str(fault))
    made.counts[fault.group] += 1
    made.counts[type(fault).__name__] += 1
    fault.strike(made)


def _await_batches(made: World, driver: Driver, batches: int) -> bool:
    """Wait for a driver's batches; False if it has ended. Without progress the faults are ended; then it must go on."""
    patience = UNDER_FAULTS_SECONDS if made.stressed and driver.batches else START_SECONDS
    if not driver.until(lambda: driver.batches >= batches, patience) and driver.status is None:
        made.tell(f"{driver.name} stands at {driver.batches} of {batches} batches: calm")
        was_hurt = made.stressed or driver.hurt
        made.calm()
        if not driver.until(lambda: driver.batches >= batches, START_SECONDS) and driver.status is None:
            made.faults.append(f"stuck: {driver.name} stands at {driver.batches} batches for {START_SECONDS:.0f} s")
            driver.end()
            return False
        driver.hurt = was_hurt
    if driver.status is not None:
        _judge_end(made, driver)
        return False
    return True


def _judge_end(made: World, driver: Driver) -> None:
    """Of a driver that ended by itself: 1 or 6 under faults is as documented, whoever restarts it goes on."""
    made.tell(f"{driver.name} ended with {driver.status}: {driver.last_word()}")
    if driver.status in (FAILED, STORAGE, -9) and (driver.hurt or made.stressed):
        made.counts["ends under faults"] += 1
        return
    if driver.status == FAILED and driver.crosses and _CROSSED in driver.last_word():
        made.counts["crossed in the log"] += 1
        return
    made.faults.append(f"{driver.name} ended with {driver.status}, though it may not have: {driver.last_word()}")


def _drain(made: World) -> None:
    """Nothing is wrong any more: a driver has to come to the tip of the stream."""
    driver = made.start(drain=True)
    until = time.monotonic() + DRAIN_SECONDS * crowding()
    while time.monotonic() < until and _await_one_more(driver):
        pass
    if driver.status != 0:
        why = f"is not at the tip after {driver.batches} batches"
        if driver.status is not None:
            why = f"ended with {driver.status}: {driver.last_word()}"
        made.faults.append(f"stuck: the drain by {driver.name} {why}")
        driver.end()
    made.faults += [f"{driver.name}, with nothing wrong: {failure}" for failure in driver.failed_services()]
    for one in made.drivers:
        if left := one.left(BURIAL_SECONDS):
            made.faults.append(f"{one.name} left processes behind: {left}")
            one.end()


def _await_one_more(driver: Driver) -> bool:
    done = driver.batches
    return driver.until(lambda: driver.batches > done, STILL_SECONDS)


def _audit(made: World, lake: Lake, result: Result) -> None:
    copied = made.lake()
    log = copied / "checkpoint" / WRITER
    told = replace(read_told(log / "commits"), begins=made.begins)
    asked, ledger = made.asked, made.producer.ledger
    truth = ledger.settle(made.stored(), made.hash_keys(), made.trimmed, told, asked.readings, asked.spans)
    truth = replace(truth, sent={**truth.sent, **asked.filed}, is_in_order=asked.is_in_order)
    result.faults += truth.faults
    table = copied / "table"
    sink = made.setting.sink
    named = read_named(log)
    quarantine = read_quarantine(log / "quarantine", named.taken)
    if sink.is_hudi:
        # Which files it has, its timeline says.
        rows = lake.read_table(table)
        made.counts.update(services_of(table, is_merge_on_read=sink.is_merge_on_read))
    else:
        rows = read_json(table)
        result.faults += misnamed(named.files, lines_of(table))
    result.faults += misnamed(named.rejects, rows_of(log / "quarantine", named.taken))
    result.verdict = judge(truth, Found(rows, quarantine), keyed=sink.is_keyed)
    seen = [read_seen(reading) for reading in made.readings.taken]
    result.faults += judge_seen(truth, seen, keyed=sink.is_keyed)
    with (result_file := made.folder / "ledger.jsonl").open("w") as lines:
        for where, sent in truth.sent.items():
            lines.write(json.dumps([*where, sent.kind, sent.fate.value, sent.data.decode(errors="replace")]) + "\n")
    made.tell(f"audited; the ledger is in {result_file.name}")
