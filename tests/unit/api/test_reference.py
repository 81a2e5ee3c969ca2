"""The configuration reference."""

from lakestream_api import LakeStream
from lakestream_api.reference import reference

LINES = reference().splitlines()


def test_a_field_is_told_with_type_default_and_meaning() -> None:
    assert "| `cores` | integer ≥ 1, ≤ 64 | `2` | CPU cores: tasks that run at once. |" in LINES
    assert any(line.startswith("| `interval` | duration | `10s` | Time between") for line in LINES)
    assert any(line.startswith("| `maxBytesPerBatch` | size | `256Mi` | ") for line in LINES)
    assert any(line.startswith("| `compression` | `none`, `gzip`, `zstd` | `gzip` | ") for line in LINES)
    assert any(line.startswith("| `recordKey` | list of text | required | ") for line in LINES)


def test_every_field_of_the_resource_is_in_it() -> None:
    schema = LakeStream.model_json_schema()
    fields = [name for model in [schema, *schema["$defs"].values()] for name in model.get("properties", {})]
    assert len(fields) > 50
    assert sum(line.startswith("| `") for line in LINES) >= len(fields)
    for field in fields:
        assert any(line.startswith(f"| `{field}` | ") for line in LINES), field


def test_every_link_leads_to_a_section() -> None:
    anchors = {"".join(filter(str.isalnum, line.lower())) for line in LINES if line.startswith("## ")}
    links = {part.split(")")[0] for line in LINES for part in line.split("](#")[1:]}
    assert links
    assert links <= anchors
