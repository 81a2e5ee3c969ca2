"""Every way to get a document wrong has a message that names the place and says what to do."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakestream_api import InvalidDocumentError, Problem, load_lakestream

VALID = """\
apiVersion: lakestream.dev/v1alpha1
kind: LakeStream
metadata:
  name: orders
spec:
  source:
    kinesis:
      stream: orders
      region: eu-west-1
  schema: order_id string, version long
  writers:
    - name: hudi
      hudi:
        path: s3a://lake/orders_hudi
        recordKey: [order_id]
        orderingField: version
    - name: json
      json:
        path: s3a://lake/orders_json
  checkpoint: s3a://lake/_checkpoints
"""
CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("invalid_documents.yaml").read_text("utf-8"))


def _errors(text: str) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        load_lakestream(text)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


TAGGED = "the document is not valid YAML: a value is not what its tag (!!…) says"
MUCH = "a: &a [x, x]\n" + "".join(
    f"{one}: &{one} [{', '.join(9 * [f'*{of}'])}]\n" for of, one in pairwise("abcdefghij")
)


def test_the_document_that_the_cases_change_is_valid() -> None:
    assert load_lakestream(VALID).metadata.name == "orders"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["by"].strip())
def test_an_invalid_field_is_named_with_what_to_do(case: dict[str, Any]) -> None:
    assert case["replace"] in VALID
    assert _errors(VALID.replace(case["replace"], case["by"], 1)) == case["says"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text has 0 documents; give one LakeStream"),
        (f"{VALID}---\n{VALID}", "the text has 2 documents; give one LakeStream"),
        ("- orders", "the document is not a mapping; begin with apiVersion: lakestream.dev/v1alpha1"),
        ("a: [", "the document is not valid YAML in line 2, column 1: did not find expected node content"),
        (
            "spec:\n\tschema: id string\n",
            "the document is not valid YAML in line 2, column 1: a tab, which YAML does not indent by; write blanks",
        ),
        (
            "metadata:\n  name: {{ name }}\n",
            "the document is not valid YAML in line 2, column 10: a mapping or list is no name of a field; "
            "fill {{ … }} in with what it stands for, or put it in quotes",
        ),
        ("spec: 1\nspec: 2\n", "the document is not valid YAML in line 2, column 1: spec is given twice"),
        (
            "data: !!binary aGVsbG8=",
            "the document is not valid YAML: Object of type bytes is not JSON serializable",
        ),
        ("a: !!bool maybe", TAGGED),
        ('a: !!int ""', TAGGED),
        ("a: !!timestamp tomorrow", TAGGED),
        ("[" * 1_000_000, "the document is not valid YAML: it is nested too deeply"),
        ("- " * 1_000_000, "the document is not valid YAML: it is nested too deeply"),
        (f"{VALID}x: {'[' * 250 + ']' * 250}", "the document is nested too deeply; write what has at most 200 levels"),
        (
            f"{VALID}x: [{'1, ' * 5_000}]",
            "the document has more than 5,000 values, as of a template of a pod; write one with fewer",
        ),
        (MUCH, "the document is not valid YAML in line 1, column 1: its aliases (*…) stand for too much"),
        ("&a [*a]", "the document is not valid YAML: Circular reference detected"),
        (
            "x: !!python/object:os.x {}",
            "the document is not valid YAML in line 1, column 4:"
            " could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.x'",
        ),
    ],
)
def test_what_is_no_document_is_refused(text: str, message: str) -> None:
    assert _errors(text) == [message]


def test_all_problems_are_told_at_once() -> None:
    text = VALID.replace("eu-west-1", "Ireland").replace("name: json", "name: JSON").replace("kind: LakeStream\n", "")
    assert [error.split(":")[0] for error in _errors(text)] == [
        "kind",
        "spec.source.kinesis.region",
        "spec.writers[1].name",
    ]


def test_a_field_name_of_the_models_is_no_field_of_the_document() -> None:
    text = VALID.replace("orderingField", "ordering_field")
    assert "spec.writers[0].hudi.ordering_field: is not a field; did you mean orderingField?" in _errors(text)


def test_an_unknown_writer_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load_lakestream(VALID).writer("delta")
    message = "there is no writer 'delta'; choose one of: hudi, json"
    assert caught.value.problems == (Problem("spec.writers", message),)
