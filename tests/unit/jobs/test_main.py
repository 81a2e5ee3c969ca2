"""The `lakestream` command, as far as it needs nothing beside itself."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakestream.main import app

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders.yaml"


@pytest.mark.parametrize(
    ("old", "new", "status", "said"),
    [
        ("", "", 0, "LakeStream orders is valid; writers: hudi (s3a://"),
        (
            "order_id string",
            "order_id strin",
            0,
            "spec.schema and spec.transform, has not been asked",
        ),
        ("interval: 10s", "interval: '10'", 2, "spec.trigger.interval: '10' is not a duration"),
        ("writers:", "wirters:", 2, "spec.wirters: is not a field; did you mean writers?"),
    ],
)
def test_a_document_is_checked(tmp_path: Path, old: str, new: str, status: int, said: str) -> None:
    text = EXAMPLE.read_text("utf-8")
    assert old in text
    document = tmp_path / "orders.yaml"
    document.write_text(text.replace(old, new, 1), "utf-8")
    result = CliRunner().invoke(app, ["validate", "-f", str(document)])
    assert said in result.output
    assert result.exit_code == status
