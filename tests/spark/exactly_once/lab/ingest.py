"""`lakestream` as it is, but that a table keeps replaced files for seconds and not for hours: cleaning takes part."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from lakestream import settings
from lakestream.main import app
from lakestream.sinks.hudi.settings import HudiSettings

RETAIN = timedelta(seconds=10)
of_document = settings.hudi_settings


def hudi_settings(*arguments: Any) -> HudiSettings:
    return replace(of_document(*arguments), retain=RETAIN)


if __name__ == "__main__":
    settings.hudi_settings = hudi_settings
    app()
