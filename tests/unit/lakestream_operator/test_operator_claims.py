"""Two LakeStreams that name one place: one goes on, the other one is told."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from lakestream_api import InvalidDocumentError
from lakestream_api.names import DOCUMENT_KEY
from lakestream_operator.claims import Claimant, claimant_of, contested, taken
from lakestream_operator.decide import decide
from lakestream_operator.model import Apply, Create, DriverPod, Memory, Observed, PodPhase, WriterSeen
from lakestream_operator.observer import FINALIZER, stream_of
from lakestream_operator.render import plan_of, wanted_of
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.cluster import JOB


def manifest(name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    made = lakestream(name)
    made["metadata"] |= {"uid": name, "creationTimestamp": created, "generation": 1, "finalizers": [FINALIZER]}
    made["spec"] |= spec
    return made


def writing(name: str, path: str, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return manifest(name, created, writers=[{"name": "json", "json": {"path": path}}])


def claimant(made: dict[str, Any], *documents: str | None, running: bool = True) -> Claimant:
    """Of one whose writers have these documents, and a driver or, if it is suspended, perhaps none."""
    pod = DriverPod("pod", "uid", NOW, None, PodPhase.RUNNING, None, None, "") if running else None
    return claimant_of(stream_of(made), [WriterSeen(document=one, driver_pod=pod) for one in documents])


def documents_of(made: dict[str, Any]) -> list[str]:
    return [plan.document for plan in wanted_of(stream_of(made)).plans.values()]


NOW = datetime(2026, 1, 3, tzinfo=UTC)
OLD = writing("old", "s3a://lake/orders")
LATER = "2026-01-02T00:00:00Z"


@pytest.mark.parametrize("document", ["", "a: [", "a: !!bool maybe", 'a: !!int ""'])
def test_a_document_that_was_spoilt_by_hand_claims_nothing_and_ends_nobody(document: str) -> None:
    assert claimant(OLD, document) == claimant(OLD)


def test_a_document_that_this_release_refuses_claims_what_its_driver_writes() -> None:
    made = manifest("old", kubernetes={"sparkConf": {"spark.executorEnv.FOO": "bar"}})
    (document,) = documents_of(OLD)
    refused = document + "  kubernetes: {sparkConf: {spark.executorEnv.FOO: bar}}\n"
    with pytest.raises(InvalidDocumentError, match=r"spark\.executorEnv\.FOO"):
        plan_of(refused)
    old, young = claimant(made, refused), claimant(writing("young", "s3a://lake/orders", LATER))
    assert old.claims == claimant(OLD).claims
    assert "the table of writer json of the LakeStream lake/old" in contested(young, [old])


@pytest.mark.parametrize(
    "document",
    [
        "spec: 1",
        "spec: {writers: {}, checkpoint: s3a://lake/c}",
        "spec: {writers: [1, {name: json}, {name: 1, json: {path: 2}}, {json: s3a://lake/orders}], checkpoint: 3}",
    ],
)
def test_a_document_without_places_claims_nothing(document: str) -> None:
    assert claimant(OLD, document) == claimant(OLD)


def test_of_a_document_that_is_refused_what_is_there_is_claimed() -> None:
    spoilt = claimant(
        OLD, "spec: {writers: [{hudi: {path: s3a://lake/x}}, {name: b, json: 1}], checkpoint: s3a://lake/c}"
    )
    assert [place.location for place in spoilt.driven] == ["s3a://lake/x", "s3a://lake/c/b"]


@pytest.mark.parametrize(
    ("young", "said"),
    [
        (writing("young", "s3a://lake/orders", LATER), "s3a://lake/orders is the table of writer json of"),
        (
            writing("young", "s3://lake/orders/json", LATER),
            "spec.writers[0].json.path: s3://lake/orders/json lies in the table of writer json of",
        ),
        (writing("young", "s3a://lake/orders", "2026-01-01T00:00:00Z"), "the table of writer json"),
        (manifest("young", LATER, checkpoint="s3a://lake/orders"), "spec.checkpoint: s3a://lake/orders/json lies in"),
        (manifest("young", LATER, checkpoint="s3a://lake/_checkpoints/old"), "is the checkpoint of writer json of"),
        (
            manifest(
                "young",
                LATER,
                checkpoint="s3a://elsewhere/young",
                writers=[{"name": "json", "json": {"path": "s3a://lake/_checkpoints"}}],
            ),
            "s3a://lake/_checkpoints holds the checkpoint of writer json of the LakeStream",
        ),
    ],
)
def test_the_younger_one_is_told_of_both(young: dict[str, Any], said: str) -> None:
    assert contested(claimant(OLD), [claimant(young)]) == ""
    problem = contested(claimant(young), [claimant(OLD)])
    assert said in problem
    assert "LakeStream lake/old" in problem
    assert "Give each a folder of its own" in problem


@pytest.mark.parametrize(
    "young",
    [
        writing("young", "s3a://lake/orders_json", LATER),
        writing("young", "s3a://other/orders", LATER),
        manifest("young", LATER, checkpoint="s3a://lake/_checkpoints/old2"),
        # Two writers' logs may lie in one folder.
        manifest(
            "young",
            LATER,
            checkpoint="s3a://lake/_checkpoints/old",
            writers=[{"name": "raw", "json": {"path": "s3a://lake/raw"}}],
        ),
        manifest("young", LATER, writers=[]),
    ],
)
def test_places_apart_are_nobodys_business(young: dict[str, Any]) -> None:
    assert contested(claimant(young), [claimant(OLD)]) == ""
    assert contested(claimant(OLD), [claimant(young)]) == ""


def test_folders_of_pods_are_the_pods_own() -> None:
    old, young = (claimant(writing(name, "/data/orders")) for name in ("old", "young"))
    assert contested(young, [old]) == ""


def test_who_writes_a_place_already_is_not_ousted_by_an_older_one_that_comes_to_name_it() -> None:
    made = writing("young", "s3a://lake/orders", LATER)
    young, old = claimant(made, *documents_of(made)), claimant(OLD, None, "no: document")
    assert contested(young, [old]) == ""
    assert "LakeStream lake/young" in contested(old, [young])


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(manifest("old", writers=[]), id="cannot be read"),
        pytest.param(writing("old", "s3a://lake/another"), id="names another"),
    ],
)
def test_what_its_drivers_have_stays_ones_own_whatever_the_spec_has_become(now: dict[str, Any]) -> None:
    old, young = claimant(now, *documents_of(OLD)), claimant(writing("young", "s3a://lake/orders", LATER))
    problem = contested(young, [old])
    assert "s3a://lake/orders is the table of writer json of the LakeStream lake/old" in problem
    assert contested(old, [young]) == ""
    assert contested(young, [claimant(now)]) == ""
    # A driver that has ended is started again, but for one that is suspended: of that nobody writes there.
    assert contested(young, [claimant(now, *documents_of(OLD), running=False)])
    suspended = {**now, "spec": {**now["spec"], "suspend": True}}
    assert contested(young, [claimant(suspended, *documents_of(OLD))])
    assert contested(young, [claimant(suspended, *documents_of(OLD), running=False)]) == ""


def test_of_two_that_name_one_place_a_suspended_one_was_there_first() -> None:
    suspended = claimant(
        manifest("old", suspend=True, writers=OLD["spec"]["writers"]), *documents_of(OLD), running=False
    )
    older = claimant(writing("older", "s3a://lake/orders", "2025-01-01T00:00:00Z"))
    assert contested(suspended, [older]) == ""
    assert contested(older, [suspended])


def test_who_has_drivers_goes_before_who_once_had_them_and_is_resumed() -> None:
    made = writing("young", "s3a://lake/orders", LATER)
    young, resumed = claimant(made, *documents_of(made)), claimant(OLD, *documents_of(OLD), running=False)
    (folder,) = {place.folder for place in young.places if "orders" in place.folder}
    assert (contested(young, [resumed]), taken(young, [resumed])) == ("", frozenset())
    assert "LakeStream lake/young" in contested(resumed, [young])
    # Nor does it begin there again by what it was given, where its spec cannot be read any more.
    spoilt = claimant(manifest("old", writers=[]), *documents_of(OLD), running=False)
    assert (contested(spoilt, [young]), taken(spoilt, [young])) == ("", {folder})


def test_who_restarts_its_drivers_has_not_let_go_of_their_places() -> None:
    made = writing("young", "s3a://lake/orders", LATER)
    runs, gone = (claimant(made, *documents_of(made), running=running) for running in (True, False))
    resumed = claimant(OLD, *documents_of(OLD), running=False)
    assert contested(gone, [resumed])
    assert contested(gone.after(runs), [resumed]) == ""
    assert contested(gone.after(runs).after(runs).after(runs), [resumed]) == ""
    assert contested(resumed, [gone.after(runs)])
    assert runs.after(runs) == runs
    # It lets go by being suspended, or by what its drivers are given next.
    suspended = claimant({**made, "spec": {**made["spec"], "suspend": True}}, *documents_of(made), running=False)
    assert contested(suspended.after(runs), [resumed])
    elsewhere = writing("young", "s3a://lake/another", LATER)
    assert claimant(elsewhere, *documents_of(elsewhere), running=False).after(runs).hold_on(runs.places[0]) == (
        False,
        False,
    )


def test_what_a_rollback_would_write_is_not_given_away() -> None:
    young = claimant(writing("young", "s3a://lake/orders", LATER))
    for rollback in (False, True):
        moved = stream_of(
            manifest("old", rollback=rollback, writers=[{"name": "json", "json": {"path": "s3a://lake/another"}}])
        )
        (document,), (good,) = documents_of(moved.manifest), documents_of(OLD)
        old = claimant_of(moved, [WriterSeen(document=document, good=good)])
        assert bool(contested(young, [old])) is rollback
        # Once the new one has committed, it is the good one.
        assert contested(young, [claimant_of(moved, [WriterSeen(document=document, good=document)])]) == ""


@pytest.mark.parametrize("free", [True, False])
def test_nothing_is_rolled_back_to_a_place_that_another_one_has_taken(clock: Any, *, free: bool) -> None:
    moved = stream_of(
        manifest("old", rollback=True, writers=[{"name": "json", "json": {"path": "s3a://lake/another"}}])
    )
    (plan,), (good,) = wanted_of(moved).plans.values(), documents_of(OLD)
    seen = WriterSeen(document=plan.document, good=good, memory=Memory(rejected=plan.fingerprint))
    young = writing("young", "s3a://lake/orders", LATER)
    rival = claimant(young, *documents_of(young))
    lost = frozenset() if free else taken(claimant_of(moved, [seen]), [rival])
    decision = decide(Observed(moved, {"json": seen}, taken=lost), JOB, clock.now)
    applied = [action.manifest.get("data", {}) for action in decision.actions["json"] if isinstance(action, Apply)]
    (document,) = (one[DOCUMENT_KEY] for one in applied if DOCUMENT_KEY in one)
    assert document == (good if free else plan.document)


def test_two_that_are_suspended_can_change_their_places() -> None:
    def suspended(made: dict[str, Any], *documents: str) -> Claimant:
        return claimant({**made, "spec": {**made["spec"], "suspend": True}}, *documents, running=False)

    young = writing("young", "s3a://lake/young", LATER)
    changed = suspended(writing("old", "s3a://lake/young"), *documents_of(OLD))
    other = suspended(writing("young", "s3a://lake/orders", LATER), *documents_of(young))
    assert contested(changed, [other]) == contested(other, [changed]) == ""


def test_of_any_number_exactly_one_gets_the_place() -> None:
    for holders in itertools.product([False, True], repeat=3):
        ages = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", LATER]
        made = [writing(f"s{one}", "s3a://lake/orders", age) for one, age in enumerate(ages)]
        documents = [documents_of(one) if holds else [] for one, holds in zip(made, holders, strict=True)]
        streams = [claimant(one, *held) for one, held in zip(made, documents, strict=True)]
        free = [one for one in streams if not contested(one, [other for other in streams if other is not one])]
        assert len(free) == 1
        assert free[0] is streams[holders.index(True) if any(holders) else 0]


def test_one_that_names_anothers_place_is_not_started_and_says_so(clock: Any) -> None:
    young = stream_of(writing("young", "s3a://lake/orders", LATER))
    problem = contested(claimant_of(young), [claimant(OLD)])
    decision = decide(Observed(young, {}, problem), JOB, clock.now)
    assert not [action for action in decision.actions if isinstance(action, Create)]
    assert decision.status is not None
    (condition,) = (one for one in decision.status.conditions if one.type == "SpecValid")
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert problem in condition.message


@pytest.mark.parametrize("driver", [None, DriverPod("pod", "uid", NOW, None, PodPhase.RUNNING, None, None, "")])
@pytest.mark.parametrize("finalizers", [["example.com/hold"], [FINALIZER, "example.com/hold"]], ids=str)
def test_one_that_is_deleted_and_drained_lets_its_table_go(finalizers: list[str], driver: DriverPod | None) -> None:
    made = writing("old", "s3a://lake/orders")
    made["metadata"] |= {"deletionTimestamp": LATER, "finalizers": finalizers}
    kept = claimant_of(stream_of(made), [WriterSeen(document=documents_of(OLD)[0], driver_pod=driver)])
    young = claimant(writing("young", "s3a://lake/orders", LATER), running=False)
    assert bool(contested(young, [kept])) == (FINALIZER in finalizers or driver is not None)
