"""What the harness reads in a driver's log is what drivers write there."""

from __future__ import annotations

import pytest

from chaos.driver import SERVICE_FAILED
from lakestream.sinks.hudi.services import Service, TableServices


def test_a_service_that_fails_is_logged_as_it_is_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("refused")

    services = TableServices([Service("compaction", fail)], every=1)
    services.committed()
    services.close()
    assert f"compaction{SERVICE_FAILED}" in caplog.text
