"""What a comparison found: typed, and kept as JSON beside the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import orjson
from pydantic import TypeAdapter, ValidationError

from lakestream_bench.compare.scenarios import Scenario
from lakestream_bench.compare.truth import Staleness


@dataclass(frozen=True)
class BatchFigures:
    """One batch, as it was written."""

    records: int
    bytes: int
    """Of the records' data, as they were in the stream."""
    seconds: float
    """From the visible batch before to this one."""
    stages: Mapping[str, float]
    """Seconds by stage: `plan`, `fetch`, `write`. The next batch is fetched while one is written."""
    sink: Mapping[str, float]
    """Seconds by stage of the sink, within `write`."""
    cpu: float
    """CPU-seconds of the JVM and its Python workers; table services that ran meanwhile included."""
    objects_written: int
    """Seen in the table's folder after the batch, and not before it, or with another size or time."""
    bytes_written: int
    objects_deleted: int
    files: int
    """In the table's folder, Hudi's own timeline included."""
    data_files: int
    bytes_at_rest: int


@dataclass(frozen=True)
class Asked:
    """One query at one look. Its answer was right."""

    kind: str
    engine: str
    """`spark`, or `native`: hudi-rs and DuckDB."""
    cold: float
    """Seconds from naming the table to the answer, its files out of the page cache, in a new session; asked first."""
    warm: float
    """Seconds of the same again at once, the median of the repetitions."""
    cpu: float
    """CPU-seconds of one warm repetition, in the mean."""
    stale: Staleness | None = None
    """How far the answer lags behind; of read-optimized queries only."""


@dataclass(frozen=True)
class Wrong:
    """An answer that is not right: a reader's, or one of plain JSON, taken as if each event were an order."""

    kind: str
    engine: str
    right: str
    given: str
    is_wrong: bool


@dataclass(frozen=True)
class Look:
    """All queries after so many batches."""

    batches: int
    events: int
    """Sent by then."""
    rows: int
    """Orders alive then."""
    since_compaction: int | None
    """Commits since the last completed compaction; None: the table needs none."""
    bytes_at_rest: int
    ideal_bytes: int
    """Of the same orders in one Parquet file as Hudi writes it (gzip)."""
    asked: tuple[Asked, ...]
    naive: tuple[Wrong, ...] = ()
    """What plain JSON answers; at the last look."""
    misread: tuple[Wrong, ...] = ()
    """What a reader is known to answer wrongly, though the table is right; it has no times."""


@dataclass(frozen=True)
class Beside:
    """One question, asked again and again of one engine while batches were written."""

    kind: str
    engine: str
    seconds: float | None
    """Of an answer, the median; None: there was none."""
    asked: int
    torn: int
    """Answers that are of no number of whole batches."""
    failed: int
    error: str
    """That of the first one that failed."""


@dataclass(frozen=True)
class Trial:
    """One arm in one repetition of one scenario."""

    scenario: str
    arm: str
    repetition: int
    document: str
    """The LakeStream document of the table, with all its options; of Hudi's defaults the options themselves."""
    batches: tuple[BatchFigures, ...]
    looks: tuple[Look, ...]
    failure: str | None = None
    """Why there are no figures: an answer was wrong, or the run failed."""
    is_wrong: bool = False
    """Whether it was an answer."""
    beside: tuple[Beside, ...] = ()
    """What was asked while batches were written, from the second look's on; of scenarios that have readers."""


@dataclass(frozen=True)
class Requests:
    """Requests that an S3 server counted while one arm wrote its batches; and for one of each query."""

    scenario: str
    arm: str
    records: int
    batches: int
    writing: Mapping[str, int]
    """By kind: PUT, POST, LIST, GET, HEAD, DELETE; a bulk delete is a POST."""
    reading: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By the kind of query."""
    failure: str | None = None
    """Why there are no counts: an answer was wrong on S3, or the run failed."""


@dataclass(frozen=True)
class Setup:
    """What the figures depend on; results of another setup are not taken up."""

    scenarios: tuple[Scenario, ...]
    versions: Mapping[str, str]
    machine: Mapping[str, str]
    spark_conf: Mapping[str, str]
    warm_repetitions: int


@dataclass(frozen=True)
class Results:
    """All of a comparison."""

    measured_at: str
    """When the trials were, which may have been kept from a run before."""
    setup: Setup
    trials: tuple[Trial, ...]
    requests: tuple[Requests, ...] = ()

    def save(self, file: Path) -> None:
        file.write_bytes(orjson.dumps(self, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


_RESULTS = TypeAdapter(Results)
_TRIAL = TypeAdapter(Trial)
_REQUESTS = TypeAdapter(Requests)


def load_results(file: Path) -> Results:
    """Read what `Results.save` wrote.

    Raises:
        ValueError: there is no such file, or it is something else, or of another version.
    """
    anew = "measure by `lakestream compare` without --report-only"
    try:
        return _RESULTS.validate_json(file.read_bytes())
    except FileNotFoundError as error:
        raise ValueError(f"there is no {file}; {anew}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"{file} has no results of `lakestream compare`, or those of another version: {where}: {first['msg']}; "
            f"{anew}"
        ) from error


class TrialStore:
    """Finished trials in a folder, so that a comparison that was interrupted goes on where it was."""

    def __init__(self, folder: Path, setup: Setup) -> None:
        """Take up what is there of the same machine, versions and settings; what is of others stays beside it."""
        # Which scenarios are run together changes no figure; each has its own files.
        content = orjson.dumps(replace(setup, scenarios=()), option=orjson.OPT_SORT_KEYS)
        self._folder = folder / f"{crc32(content):08x}"
        self.others = [one.parent for one in folder.glob("*/setup.json") if one.parent != self._folder]
        """Folders of trials of other setups."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "setup.json").write_bytes(content)

    def trial(self, scenario: Scenario, arm: str, repetition: int) -> Trial | None:
        """A trial that was finished before, or failed."""
        file = self._file(scenario, arm, str(repetition))
        return _TRIAL.validate_json(file.read_bytes()) if file.exists() else None

    def requests(self, scenario: Scenario, arm: str) -> Requests | None:
        """Requests that were counted before."""
        file = self._file(scenario, arm, "requests")
        return _REQUESTS.validate_json(file.read_bytes()) if file.exists() else None

    def put(self, scenario: Scenario, figures: Trial | Requests) -> None:
        """Keep what was found."""
        part = str(figures.repetition) if isinstance(figures, Trial) else "requests"
        file = self._file(scenario, figures.arm, part)
        # Whole or not at all, whatever ends us.
        draft = file.with_suffix(".draft")
        draft.write_bytes(orjson.dumps(figures))
        draft.replace(file)

    def measured_at(self, trials: Iterable[tuple[Scenario, Trial]]) -> str:
        """When the last one of these ended, and if that was not on one day, the first one too."""
        files = [self._file(scenario, one.arm, str(one.repetition)) for scenario, one in trials]
        ended = [datetime.fromtimestamp(file.stat().st_mtime, UTC) for file in files]
        first, last = (time.isoformat(timespec="seconds") for time in (min(ended), max(ended)))
        return last if min(ended).date() == max(ended).date() else f"{first} to {last}"

    def _file(self, scenario: Scenario, arm: str, part: str) -> Path:
        # The load is part of the name: another one is another measurement.
        load = crc32(orjson.dumps(scenario))
        return self._folder / f"{scenario.name}-{load:08x}.{arm}.{part}.figures.json"
