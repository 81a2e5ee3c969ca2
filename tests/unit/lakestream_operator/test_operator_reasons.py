"""What conditions and events give as their reason is explained where people look for it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_REASON = re.compile(r'(?:_Said\(\s*\w+|Emit\()[,\s]*"([A-Z]\w+)"|"([A-Z]\w+Failing)"')


def test_all_reasons_are_in_the_docs() -> None:
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    sources = [path.read_text("utf-8") for path in (ROOT / "operator" / "lakestream_operator").rglob("*.py")]
    reasons = {said or failing for source in sources for said, failing in _REASON.findall(source)}
    assert {"SpecInvalid", "Settled", "Scaled", "Resharding", "CatalogFailing"} <= reasons
    assert not sorted(reason for reason in reasons if f"`{reason}`" not in page)
