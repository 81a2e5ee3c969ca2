"""Each image's lock is what the repository's lock pins of the things that its packages need."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOCK = runpy.run_path(str(ROOT / "images" / "lock.py"))


def test_every_image_has_a_lock() -> None:
    assert {path.parent.name for path in (ROOT / "images").glob("*/Dockerfile")} == set(LOCK["IMAGES"])


@pytest.mark.parametrize("image", LOCK["IMAGES"])
def test_locks_are_current(image: str) -> None:
    written = (ROOT / "images" / image / "requirements.lock").read_text("utf-8")
    assert written == LOCK["lock_of"](image), f"images/{image}/requirements.lock is stale; run: python images/lock.py"


@pytest.mark.parametrize("image", LOCK["IMAGES"])
def test_images_have_no_build_tools_and_run_as_nobody_in_particular(image: str) -> None:
    text = (ROOT / "images" / image / "Dockerfile").read_text("utf-8")
    last = text[text.rindex("\nFROM ") :]
    assert "apt-get install" not in last or image == "spark"
    assert "pip install" not in last
    assert "\nUSER " in last
    assert "tini" in text
