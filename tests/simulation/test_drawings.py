"""A drawing that stands by itself."""

from xml.etree import ElementTree as ET

from lakestream_bench.pages.plots import Plot, Series, drawing


def test_plots_stand_under_each_other_in_one_document() -> None:
    line = Series("rate", "#000", [(0.0, 1.0), (2.0, 3.0)])
    root = ET.fromstring(
        drawing([Plot("First & one", "s", [line], 2.0, height=100), Plot("Second", "s", [line], 2.0, time="minutes")])
    )
    inner = root.findall("{*}svg")
    assert [one.get("aria-label") for one in inner] == ["First & one", "Second"]
    assert [one.get("y") for one in inner] == ["0", "100"]
    assert root.get("viewBox", "").endswith(" 250")
    assert "minutes" in "".join(inner[1].itertext())
