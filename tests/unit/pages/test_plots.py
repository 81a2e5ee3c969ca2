"""Plots: what is drawn lies where it should."""

import re
from xml.etree import ElementTree as ET

import pytest

from lakestream_pages.plots import LEFT, RIGHT, WIDTH, Plane, Plot, Point, Series, drawing


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


def test_points_keep_within_the_plane_with_their_ranges() -> None:
    points = [Point("a", "red", 1, 2, (0.5, 4.9), (1, 9.9)), Point("b", "red", 4.9, 0, (4.9, 4.9), (0, 0))]
    svg = Plane("title", "x", "y", points).svg()
    xs = [float(x) for x in re.findall(r'cx="([\d.]+)"', svg)] + [float(x) for x in re.findall(r"H([\d.]+)M", svg)]
    ys = [float(y) for y in re.findall(r'cy="([\d.]+)"', svg)] + [float(y) for y in re.findall(r"V([\d.]+)", svg)]
    assert all(LEFT <= x <= WIDTH for x in xs)
    assert all(0 <= y <= 300 for y in ys)
    # The second one is near the right edge, and its name goes to the left.
    assert svg.count("text-anchor:end") == 1


def test_a_mark_s_words_are_within_the_plot() -> None:
    line = Series("a", "red", [(0, 1), (100, 1)])
    svg = Plot("title", "s", [line], 100, marks=[(20, "load"), (95, "end & all")]).svg()
    (first, first_words), (last, last_words) = (
        (float(x), words) for x, words in re.findall(r'<line x1="([\d.]+)"[^>]* class="goal"/>(<text.*?</text>)', svg)
    )
    assert first == pytest.approx(LEFT + 0.2 * (WIDTH - LEFT - RIGHT), abs=0.1)
    assert "text-anchor:start" in first_words
    assert last > 0.9 * (WIDTH - RIGHT)
    assert "text-anchor:end" in last_words
    assert "end &amp; all" in last_words


@pytest.mark.parametrize(
    ("unit", "length", "last"),
    [("hours", 72.0, "72"), ("hours", 300, "300"), ("s", 130.0, "120"), ("batches", 36, "35")],
)
def test_times_are_those_of_their_unit(unit: str, length: float, last: str) -> None:
    svg = Plot("title", "s", [Series("a", "red", [(0, 1)])], length, time=unit).svg()
    assert re.findall(r'class="x">([\d.]+)</text>', svg)[-1] == last
