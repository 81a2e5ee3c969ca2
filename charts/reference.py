"""Writes the table of values in each chart's README.md from the comments in its values.yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

CHARTS = Path(__file__).parent
NAMES = sorted(path.parent.name for path in CHARTS.glob("*/Chart.yaml"))
BEGIN, END = "<!-- values: written by charts/reference.py -->", "<!-- /values -->"


@dataclass(frozen=True)
class Value:
    """A value of a chart; ``text`` is the comment above it, empty if there is none."""

    path: str
    default: object
    text: str


def values_of(chart: str) -> list[Value]:
    """All values of a chart. A mapping counts as one value if no key in it has a comment of its own."""
    text = (CHARTS / chart / "values.yaml").read_text("utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_walk(root, "", text.splitlines()))


def _walk(node: yaml.MappingNode, prefix: str, lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and any(_comment(inner, lines) for inner, _ in value.value):
            yield from _walk(value, f"{path}.", lines)
        else:
            default = yaml.safe_load(yaml.serialize(value))
            yield Value(path, default, _comment(key, lines))


def _comment(key: yaml.Node, lines: list[str]) -> str:
    first = last = key.start_mark.line
    while first > 0 and lines[first - 1].strip().startswith("#"):
        first -= 1
    return " ".join(line.strip().removeprefix("#").strip() for line in lines[first:last])


def table(chart: str) -> str:
    """The table, in Markdown."""
    rows = [f"| `{value.path}` | `{json.dumps(value.default)}` | {value.text} |" for value in values_of(chart)]
    return "\n".join([BEGIN, "", "| value | default | |", "|---|---|---|", *rows, "", END])


def current(chart: str) -> str:
    """README.md with the table as it should be."""
    text = (CHARTS / chart / "README.md").read_text("utf-8")
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(chart), text, flags=re.DOTALL)


def main() -> None:
    for chart in NAMES:
        (CHARTS / chart / "README.md").write_text(current(chart), "utf-8")


if __name__ == "__main__":
    main()
