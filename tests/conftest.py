"""What must be known before any test is collected."""

from __future__ import annotations

from pathlib import Path

import pytest

E2E = Path(__file__).parent / "e2e"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--with-e2e", action="store_true", help="also run tests/e2e, on kubectl's current context")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nobody's cluster is touched by accident."""
    return True if collection_path == E2E and not config.getoption("--with-e2e") else None
