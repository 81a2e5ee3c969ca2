"""The LakeStream as an API server hands it out."""

import json
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from lakestream_api import (
    InvalidDocumentError,
    LakeStreamStatus,
    Phase,
    Scaling,
    load_lakestream,
    load_lakestream_object,
    load_scaling,
    unknown_fields,
)

TEXT = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text("utf-8")


CLUSTER_TEXT = (Path(__file__).parents[3] / "examples" / "lakestream.yaml").read_text("utf-8")


def _served() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(TEXT)
    manifest["metadata"] |= {
        "namespace": "lake",
        "uid": "1f0b",
        "resourceVersion": "42",
        "generation": 3,
        "creationTimestamp": "2026-01-31T06:00:00Z",
        "deletionTimestamp": "2026-01-31T07:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["lakestream.dev/drain"],
        "ownerReferences": [],
        "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
    }
    manifest["status"] = {"phase": "Running", "colour": "blue"}
    return manifest


def test_what_the_server_adds_is_passed_over() -> None:
    served = _served()
    assert load_lakestream_object(served).spec == load_lakestream(TEXT).spec
    assert load_lakestream_object(served).metadata.namespace == "lake"
    assert served == _served()


def test_a_document_may_not_have_what_only_the_server_adds() -> None:
    with pytest.raises(InvalidDocumentError, match=r"metadata\.uid: is not a field"):
        load_lakestream(json.dumps(_served()))


def _places(model: BaseModel, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a document has fields, of which a newer release may know more."""
    yield at
    for name, value in model:
        alias = str(type(model).model_fields[name].validation_alias)
        for index, one in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
            if isinstance(one, BaseModel):
                yield from _places(one, (*at, alias) if index is None else (*at, alias, index))


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_fields_of_a_newer_release_are_passed_over_and_named_wherever_they_are(data: st.DataObject) -> None:
    stream = load_lakestream(CLUSTER_TEXT)
    served = stream.model_dump(mode="json", by_alias=True, exclude_none=True)
    places = data.draw(st.lists(st.sampled_from(list(_places(stream))), min_size=1, unique=True))
    for place in places:
        node = reduce(getitem, place, served)
        node["newField"] = data.draw(st.sampled_from([False, 1, "x", {"y": 1}, [{}]]))
    text = json.dumps(served)
    assert load_lakestream_object(served) == stream
    assert json.dumps(served) == text
    assert len(unknown_fields(served)) == len(set(unknown_fields(served))) == len(places)
    assert all(one.endswith("newField") for one in unknown_fields(served))
    with pytest.raises(InvalidDocumentError) as caught:
        load_lakestream(text)
    assert sorted(problem.path for problem in caught.value.problems) == sorted(unknown_fields(served))


def test_what_is_wrong_beside_an_unknown_field_is_told_without_it() -> None:
    served = _served()
    served["spec"]["sinks"] = served["spec"]["trigger"]["intervall"] = 1
    assert unknown_fields(served) == ("spec.trigger.intervall", "spec.sinks")
    served["spec"]["trigger"]["interval"] = "10 seconds"
    with pytest.raises(InvalidDocumentError) as caught:
        load_lakestream_object(served)
    assert [problem.path for problem in caught.value.problems] == ["spec.trigger.interval"]
    assert unknown_fields(served) == ("spec.trigger.intervall", "spec.sinks")


def test_scaling_is_read_whatever_the_rest_says() -> None:
    served = _served()
    served["spec"] |= {"transform": 5, "scaling": {"maxExecutors": 7}}
    assert load_scaling(served).max_executors == 7
    served["spec"]["scaling"]["newField"] = False
    assert load_scaling(served).max_executors == 7
    del served["spec"]["scaling"]
    assert load_scaling(served) == Scaling()
    for wrong in ({"maxExecutors": 0}, None, [], {"schedule": [{}]}, {"minExecutors": 3, "maxExecutors": 2}):
        served["spec"]["scaling"] = wrong
        with pytest.raises(InvalidDocumentError, match=r"spec\.scaling"):
            load_scaling(served)
    with pytest.raises(InvalidDocumentError):
        load_scaling({"spec": None})


def test_what_is_no_lakestream_is_refused() -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load_lakestream_object({"apiVersion": "v1", "kind": "Pod", "metadata": "x"})
    assert [problem.path for problem in caught.value.problems] == ["apiVersion", "kind", "metadata", "spec"]


def test_a_status_survives_the_wire_and_newer_fields() -> None:
    status = LakeStreamStatus.model_validate(
        {
            "observedGeneration": 3,
            "phase": "Running",
            "lag": "1m5s",
            "recordsPerSecond": 1200,
            "executors": {"now": 2, "target": 3},
            "writers": [{"name": "hudi", "application": "RUNNING", "epoch": 2, "lagSeconds": 64.5}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "BatchesCommitted",
                    "message": "All writers commit batches.",
                    "lastTransitionTime": "2026-01-31T06:00:00Z",
                }
            ],
        }
    )
    wire = json.loads(status.model_dump_json(exclude_none=True))
    assert (wire["lag"], wire["phase"], wire["writers"][0]["lagSeconds"]) == ("1m5s", "Running", 64.5)
    assert LakeStreamStatus.model_validate({**wire, "colour": "blue"}) == status
    assert status.phase is Phase.RUNNING
