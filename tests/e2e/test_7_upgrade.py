"""An upgrade of a release that has rights in two namespaces only, and its rollback, while events flow.

Begins with another release's sources and images: `.ci/cluster former REV`, then with `--former=build/former`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cluster.commands import CommandError, Kubectl, helm
from cluster.installation import IMAGES, LAKE, SYSTEM, Images, Release
from cluster.lake import Lake
from cluster.load import start_load, stop_load
from cluster.stream import STARTS, WRITERS, Stream
from cluster.waiting import eventually, steadily
from lakestream_api import ConditionType

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module", autouse=True)
def events(request: pytest.FixtureRequest, orders: Stream, lake: Lake) -> None:
    if request.config.getoption("--former") is None:
        pytest.skip("needs --former FOLDER, with the sources of the release to begin with")
    orders.wait_for_condition(ConditionType.READY, "True")
    start_load(LAKE, lake.ledger, 200, seed=7)
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)


def drivers(orders: Stream) -> dict[str, str]:
    return {writer: orders.driver_uid(writer) for writer in WRITERS}


def images(orders: Stream) -> set[str]:
    """Those that the drivers run."""
    pods = [orders.driver(writer) for writer in WRITERS]
    return {pod["spec"]["containers"][0]["image"] for pod in pods if pod}


def operator_image() -> str:
    deployment = Kubectl(SYSTEM).get("deployment", "lakestream-operator")
    assert deployment is not None
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def require_undisturbed(orders: Stream, before: dict[str, str]) -> None:
    """The same drivers go on, and the operator that is there now knows how they are."""
    steadily("the same drivers", lambda: drivers(orders) == before, 15, lambda: drivers(orders))
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    orders.wait_for_condition(ConditionType.READY, "True")


def require_restarted(orders: Stream, image: str) -> None:
    """Drivers that are asked to start anew run that image, and go on where they were."""
    batches = {writer: orders.writer(writer).last_batch or 0 for writer in WRITERS}
    orders.kubectl.run("annotate", "--overwrite", "lakestream", orders.name, f"lakestream.dev/restart={image}")
    eventually(f"drivers run {image}", lambda: images(orders) == {image}, STARTS, lambda: images(orders))
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert all((orders.writer(writer).last_batch or 0) > batches[writer] for writer in WRITERS)
    assert [orders.writer(writer).restarts for writer in WRITERS] == [0, 0], "a restart counts as a failure"


def test_an_upgrade_restarts_no_driver(orders: Stream, installation: Release) -> None:
    before = drivers(orders)
    installation.successor.install()
    assert operator_image() == IMAGES.reference("operator")
    require_undisturbed(orders, before)
    orders.wait_for_condition(ConditionType.UP_TO_DATE, "False")


def test_drivers_take_the_new_image_up_when_they_are_asked(orders: Stream) -> None:
    require_restarted(orders, IMAGES.reference("spark"))
    orders.wait_for_condition(ConditionType.UP_TO_DATE, "True")


def test_the_release_has_no_rights_in_another_namespace() -> None:
    ask = ("auth", "can-i", "list", "configmaps", "--as", f"system:serviceaccount:{SYSTEM}:lakestream-operator")
    assert Kubectl(LAKE).run(*ask).strip() == "yes"
    with pytest.raises(CommandError, match="no"):
        Kubectl("default").run(*ask)


def test_it_is_rolled_back(orders: Stream, installation: Release) -> None:
    before = drivers(orders)
    helm("rollback", "lakestream", "1", "-n", SYSTEM, "--wait", "--timeout=5m")
    assert operator_image() == installation.images.reference("operator")
    require_undisturbed(orders, before)
    require_restarted(orders, Images(tag="former").reference("spark"))


def test_nothing_was_lost_or_doubled(orders: Stream, lake: Lake, spark: SparkSession, scratch: Path) -> None:
    stop_load(LAKE)
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))
