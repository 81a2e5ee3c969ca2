"""Phase and conditions of a LakeStream, from what was decided of its writers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakestream_api import Condition, ConditionStatus, ConditionType, LakeStreamStatus, Phase, QuarantineStatus
from lakestream_operator.model import Refusal, Stream
from lakestream_operator.quarantine import tell_of
from lakestream_operator.writers import Outcome, Situation, WriterDecision

REPEATED = 3
"""Failures in a row after which a writer is not well though it runs again: it may fail the next minute."""

FAILED = "CycleFailed"
"""Of a LakeStream of which nothing can be decided, by a bug."""

_TROUBLE = (Situation.STALLED, Situation.BACKING_OFF, Situation.BLOCKED)
_CHANGING = (Situation.STARTING, Situation.DRAINING, Situation.STOPPING)
_MAX_MESSAGE = 4096
_GOES_ON = "What ran before goes on."


@dataclass(frozen=True, slots=True)
class Findings:
    """What conditions are made from."""

    writers: Mapping[str, WriterDecision] = field(default_factory=dict)
    """By name; those that are told of."""
    problems: str = ""
    """What is wrong with the spec, or empty."""
    unknown: tuple[str, ...] = ()
    """Fields of the spec that are passed over."""
    left_alone: tuple[str, ...] = ()
    """Writers that run, of which neither spec nor document can be read."""
    kept: str = ""
    """What is deleted and still there, and what keeps it; or empty."""
    let_go: str = ""
    """The same of the LakeStream itself, of which nothing runs any more; or empty."""
    suspended: bool = False
    poisoned: Mapping[str, QuarantineStatus] = field(default_factory=dict)
    """Writers that keep more in quarantine than is usual."""
    refusal: Refusal | None = None
    """What was refused of the LakeStream itself, and is worth telling."""

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Of each writer."""
        return {name: one.outcome for name, one in self.writers.items()}

    @property
    def rolled_back(self) -> list[str]:
        """Writers that run an older spec than the one asked for."""
        return sorted(name for name, one in self.writers.items() if one.is_rolled_back)


@dataclass(frozen=True, slots=True)
class _Said:
    true: bool
    reason: str
    message: str


def conditions(stream: Stream, findings: Findings, now: datetime) -> tuple[Condition, ...]:
    """All conditions; the time of one whose status is as before stays."""
    said = {
        ConditionType.READY: _ready(findings),
        ConditionType.PROGRESSING: _progressing(stream, findings),
        ConditionType.DEGRADED: _degraded(findings),
        ConditionType.STALLED: _stalled(findings),
        ConditionType.SPEC_VALID: _spec_valid(findings),
        ConditionType.SCALING_LIMITED: _scaling_limited(findings),
        ConditionType.QUARANTINING: _quarantining(findings),
        ConditionType.UP_TO_DATE: _up_to_date(findings),
    }
    before = {one.type: one for one in stream.status.conditions} if stream.status else {}
    return tuple(_condition(kind, one, before.get(kind), stream.generation, now) for kind, one in said.items())


def _condition(kind: ConditionType, said: _Said, before: Condition | None, generation: int, now: datetime) -> Condition:
    status = ConditionStatus.TRUE if said.true else ConditionStatus.FALSE
    unchanged = before is not None and before.status is status
    since = before.last_transition_time if before and unchanged else now.replace(microsecond=0)
    return Condition(
        type=kind,
        status=status,
        reason=said.reason,
        message=said.message[:_MAX_MESSAGE],
        last_transition_time=since,
        observed_generation=generation,
    )


def failed(stream: Stream, error: Exception, now: datetime) -> LakeStreamStatus:
    """The status, as it was written last, where nothing can be decided any more: a bug."""
    message = (
        f"The operator fails on this LakeStream ({type(error).__name__}: {error}): what runs goes on, and is neither"
        " changed, healed nor scaled. See its log. It tries again, a minute apart at most; at once with another spec."
    )
    before = stream.status or LakeStreamStatus()
    known = {one.type: one for one in before.conditions}
    kind = ConditionType.DEGRADED
    known[kind] = _condition(kind, _Said(True, FAILED, message), known.get(kind), stream.generation, now)
    bad = Phase.DELETING if stream.deleting else Phase.DEGRADED if before.writers else Phase.FAILED
    return before.model_copy(update={"phase": bad, "conditions": tuple(known.values())})


def _told(outcomes: Mapping[str, Outcome]) -> str:
    return " ".join(f"Writer {name}: {one.message or one.reason}" for name, one in outcomes.items())


def _first(outcomes: Mapping[str, Outcome]) -> str:
    return next(iter(outcomes.values())).reason


def _ready(findings: Findings) -> _Said:
    if findings.let_go:
        return _Said(False, "Deleted", findings.let_go)
    if findings.suspended:
        return _Said(False, "Suspended", "spec.suspend is true; set it to false to go on where it stopped.")
    waiting = {name: one for name, one in findings.outcomes.items() if one.situation is not Situation.RUNNING}
    if waiting:
        # What is wrong comes before what is merely on its way.
        worst = {name: one for name, one in waiting.items() if one.situation in _TROUBLE} or waiting
        return _Said(False, _first(worst), _told(waiting))
    if findings.refusal is not None:
        return _Said(False, findings.refusal.reason, findings.refusal.message)
    if not findings.outcomes:
        runs = _unread(findings) if findings.left_alone else "Nothing runs."
        return _Said(False, "SpecInvalid", f"{runs} {findings.problems}")
    if findings.problems:
        # Who waits for a spec to be carried out waits for this one, which never will be.
        return _Said(False, "SpecInvalid", f"{findings.problems} {_GOES_ON}")
    if findings.rolled_back:
        return _Said(False, "RolledBack", _went_back(findings))
    return _Said(True, "Running", "All drivers commit batches.")


def _unread(findings: Findings) -> str:
    """Of what an earlier release took, which this one refuses."""
    names = ", ".join(findings.left_alone)
    return (
        f"What runs goes on ({names}), but is neither healed nor scaled: what it was started with is refused as well."
    )


def _went_back(findings: Findings) -> str:
    return (
        f"The last spec that ran is in force for {', '.join(findings.rolled_back)}, since the new one never got to run:"
        " the event RolledBack says why. Correct the spec to try again."
    )


def _progressing(stream: Stream, findings: Findings) -> _Said:
    changing = {name: one for name, one in findings.outcomes.items() if one.situation in _CHANGING}
    if changing:
        return _Said(True, "Deleting" if stream.deleting else _first(changing), _told(changing))
    return _Said(False, "Settled", "Nothing is being started, changed or stopped.")


def troubled(outcome: Outcome) -> bool:
    """Whether a writer does not do what it should."""
    failures, ending = outcome.memory.failures, outcome.memory.ending
    if outcome.situation is Situation.RUNNING:
        return failures >= REPEATED
    if outcome.situation in _TROUBLE:
        return True
    # What a driver has got over is not why the next one starts.
    return failures > 0 and outcome.situation in _CHANGING and not (ending and ending.over)


def _degraded(findings: Findings) -> _Said:
    bad = {name: one for name, one in findings.outcomes.items() if troubled(one)}
    services = [(name, one) for name, writer in findings.writers.items() for one in writer.failing]
    if findings.rolled_back:
        return _Said(True, "RolledBack", f"{_went_back(findings)} {_told(bad)}".rstrip())
    told = " ".join(
        [f"Writer {name}: {_trouble(one)}" for name, one in bad.items()]
        + [f"Writer {name}: {one.message}" for name, one in services]
    )
    if not bad:
        if services:
            return _Said(True, services[0][1].reason, told)
        if findings.kept:
            return _Said(True, "DeletionHangs", findings.kept)
        if findings.refusal is not None:
            return _Said(True, findings.refusal.reason, findings.refusal.message)
        return _Said(False, "AsExpected", "No writer has a problem.")
    worst = next(iter(bad.values()))
    ending = worst.memory.ending
    return _Said(True, worst.reason if worst.situation in _TROUBLE or ending is None else ending.reason, told)


def _stalled(findings: Findings) -> _Said:
    """Who goes by kstatus, as Flux does, waits no longer where this is so."""
    blocked = {name: one for name, one in findings.outcomes.items() if one.situation is Situation.BLOCKED}
    if not findings.suspended and not findings.let_go:
        if findings.problems:
            return _Said(True, "SpecInvalid", findings.problems)
        if blocked:
            return _Said(True, _first(blocked), _told(blocked))
        if findings.rolled_back:
            return _Said(True, "RolledBack", _went_back(findings))
    return _Said(False, "NotStalled", "Nothing waits for a change of the spec.")


def _trouble(outcome: Outcome) -> str:
    ending, failures = outcome.memory.ending, outcome.memory.failures
    if outcome.situation is Situation.STALLED or ending is None:
        return outcome.message
    times = f"failed {failures} times in a row, last" if failures > 1 else "failed once,"
    return f"{times} at {ending.at:%F %T} UTC: {ending.message}"


def _spec_valid(findings: Findings) -> _Said:
    if findings.problems:
        goes_on = _GOES_ON if findings.writers else ""
        left = _unread(findings) if findings.left_alone else ""
        return _Said(False, "Invalid", " ".join(filter(None, (findings.problems, goes_on, left))))
    refused = {name: one for name, one in findings.outcomes.items() if one.reason == "SettingsRefused"}
    if refused:
        return _Said(False, "SettingsRefused", _told(refused))
    if findings.unknown:
        told = "The spec is carried out without what this operator, which is older than the CRD, does not know:"
        return _Said(True, "FieldsUnknown", f"{told} {', '.join(findings.unknown)}. Bring the operator up to date.")
    return _Said(True, "Valid", "The spec can be carried out.")


def _scaling_limited(findings: Findings) -> _Said:
    limits = {name: one.scale.condition for name, one in findings.writers.items() if one.scale and one.scale.condition}
    if not limits:
        return _Said(False, "NotLimited", "Nothing stands in the way of the executors that are called for.")
    told = " ".join(f"Writer {name}: {one.message}." for name, one in limits.items())
    return _Said(True, next(iter(limits.values())).reason.value, told)


def _up_to_date(findings: Findings) -> _Said:
    old = [(name, one) for name, one in findings.writers.items() if one.has_other_image]
    otherwise = [name for name, one in findings.writers.items() if one.has_other_settings and not one.has_other_image]
    if not old and not otherwise:
        return _Said(True, "Current", "All that runs, runs as it would be started now.")
    runs = {name: one.seen.application.image for name, one in old if one.seen.application}
    said = [f"Writer {name} runs {runs[name]}, not {one.wanted_image}." for name, one in old]
    said += [f"Writer {name} runs with other pods than the operator's settings ask for now." for name in otherwise]
    advice = "The next start takes it up; for one at the end of the batch in hand, annotate the LakeStream with"
    reason = "OlderImage" if old else "OlderSettings"
    return _Said(False, reason, f"{' '.join(said)} {advice} lakestream.dev/restart=<anything>.")


def _quarantining(findings: Findings) -> _Said:
    bad = findings.poisoned
    if not bad:
        return _Said(False, "Usable", "Records are usable, but for as many as spec.quarantine.warnFraction allows.")
    said = " ".join(tell_of(name, one) for name, one in bad.items())
    return _Said(True, "RecordsUnusable", f"{said} They are kept with their bytes in the checkpoint's quarantine.")


def phase(stream: Stream, findings: Findings) -> Phase:
    """The state in a word."""
    outcomes = findings.outcomes.values()
    situations = {one.situation for one in outcomes}
    if stream.deleting:
        return Phase.DELETING
    if findings.suspended:
        return Phase.SUSPENDED if situations <= {Situation.STOPPED} else Phase.SUSPENDING
    bad = [one for one in outcomes if troubled(one)]
    # What has failed again and again, and runs now, has not failed.
    if not situations or (len(bad) == len(outcomes) and Situation.RUNNING not in situations):
        return Phase.FAILED
    if bad or findings.rolled_back or any(one.failing for one in findings.writers.values()):
        return Phase.DEGRADED
    if findings.problems or findings.kept:
        return Phase.DEGRADED
    if situations == {Situation.RUNNING}:
        return Phase.RUNNING
    return Phase.UPDATING if situations & {Situation.DRAINING, Situation.STOPPING} else Phase.STARTING
