"""`lakestream` as it is, but that a table keeps replaced files for seconds and not for hours: cleaning takes part. And
that a driver may go on unseen for as long as the lab says."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from lakestream import app as parts
from lakestream import settings
from lakestream.log import FenceSettings
from lakestream.main import app
from lakestream.sinks.hudi.settings import HudiSettings

RETAIN = timedelta(seconds=10)
PATIENCE = "LAB_PATIENCE"
"""Environment variable: seconds without an answer from the log after which the driver ends. How long a successor waits
does not change with it."""
of_document = settings.hudi_settings


def hudi_settings(*arguments: Any) -> HudiSettings:
    return replace(of_document(*arguments), retain=RETAIN)


if __name__ == "__main__":
    settings.hudi_settings = hudi_settings
    patience = timedelta(seconds=float(os.environ[PATIENCE]))
    parts.FenceSettings = partial(FenceSettings, patience=patience)  # type: ignore[assignment,misc]
    app()
