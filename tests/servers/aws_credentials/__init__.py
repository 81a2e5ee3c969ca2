"""Who gives credentials of AWS, and an environment in which nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from botocore.credentials import ReadOnlyCredentials


@dataclass
class Giver:
    """Stands for botocore's credentials."""

    failure: Exception | None = None
    asked: int = 0

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return ReadOnlyCredentials(f"key-{self.asked}", "secret", None)


def take_away(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Leave an environment that says nothing of AWS."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(folder / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
