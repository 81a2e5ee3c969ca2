"""The service's own model, as botocore ships it, beside what is served and what is documented as left out."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakestream_localkinesis.errors import ApiError
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations import OPERATIONS
from tests.unit.localkinesis.conftest import MODEL

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

DOCUMENT = Path(__file__).parents[3] / "docs/local-kinesis.md"
RESERVED = {"StreamId"}
"""Not implemented by the service either, says the model."""


def named_in(paragraph: str) -> set[str]:
    """The operations that a paragraph of the document names."""
    [text] = re.findall(rf"\*\*{paragraph}\.\*\*(.*?)\n\n", DOCUMENT.read_text(), re.DOTALL)
    return set(re.findall(r"\w+", text)) & set(MODEL.operation_names)


def test_each_operation_is_served_or_documented_as_left_out():
    assert named_in("Operations") == set(OPERATIONS)
    assert named_in("Left out") == set(MODEL.operation_names) - set(OPERATIONS)


class Watched(dict[str, Any]):
    """Fields that remember which of them were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, name: str, default: object = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_no_option_of_an_operation_is_ignored(api: Api, operation: str):
    values = Watched()
    if operation == "PutRecords":
        # Its fields are read before its records are.
        values["Records"] = [values]
    if operation == "PutRecord":
        values.update(StreamName="orders", Data="")
    with suppress(ApiError):
        OPERATIONS[operation](api.application.account, Fields(values), api.clock.now_ms())
    shape = MODEL.operation_model(operation).input_shape
    assert shape is not None
    assert set(shape.members) - RESERVED <= values.read
