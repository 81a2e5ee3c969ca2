"""A Hive metastore for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.metastore import Metastore, running


@pytest.fixture(scope="session", params=["2.3.9", pytest.param("3.1.3", marks=pytest.mark.slow)])
def metastore(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """One of the release that is in Spark's jars, and one that many installations have."""
    with running(tmp_path_factory.mktemp("metastore"), request.param) as started:
        yield started
