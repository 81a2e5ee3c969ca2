"""Names of what is made for a writer: within Kubernetes's limits, and never those of another writer."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakestream_api import Control, WriterNames

STREAMS = st.from_regex(r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?", fullmatch=True)
WRITERS = st.from_regex(r"[a-z][a-z0-9]{0,15}", fullmatch=True)
NAMES = st.builds(WriterNames, STREAMS, WRITERS)


def _config_maps(names: WriterNames) -> list[str]:
    return [names.document, names.progress, names.control]


def test_the_names_are_these() -> None:
    names = WriterNames("orders", "hudi")
    assert (names.application, names.driver_pod, names.executor_prefix) == (
        "orders-hudi",
        "orders-hudi-driver",
        "orders-hudi",
    )
    assert _config_maps(names) == ["orders-hudi-document", "orders-hudi-progress", "orders-hudi-control"]
    assert (names.service_account, names.role_binding) == ("orders-hudi", "orders-hudi")
    assert names.labels == {
        "app.kubernetes.io/name": "lakestream",
        "app.kubernetes.io/instance": "orders",
        "app.kubernetes.io/managed-by": "lakestream-operator",
        "lakestream.dev/stream": "orders",
        "lakestream.dev/writer": "hudi",
    }


@given(NAMES)
def test_every_name_is_a_dns_label_with_room_for_executors(names: WriterNames) -> None:
    for name in [names.driver_pod, f"{names.executor_prefix}-exec-{2**31 - 1}", *_config_maps(names)]:
        assert len(name) <= 63
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)


@given(NAMES, NAMES)
def test_two_writers_share_no_name(one: WriterNames, two: WriterNames) -> None:
    assume(one != two)
    assert one.application != two.application
    assert not set(_config_maps(one)) & set(_config_maps(two))


@pytest.mark.parametrize("text", ["{}", '{"executors": null, "colour": "blue"}'])
def test_a_control_that_asks_for_nothing(text: str) -> None:
    assert Control.model_validate_json(text) == Control()


def test_a_control_survives_the_wire() -> None:
    control = Control(executors=3, shards=8, drain="generation-7")
    assert control.model_dump_json() == '{"executors":3,"shards":8,"drain":"generation-7"}'
    assert Control.model_validate_json(control.model_dump_json()) == control
