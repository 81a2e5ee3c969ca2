"""Plots: what is drawn lies where it should."""

import re
from xml.etree import ElementTree as ET

import pytest

from lakestream_pages.plots import LEFT, RIGHT, TOP, WIDTH, Dot, LogPlot, Plane, Plot, Point, Series, drawing


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


@pytest.mark.parametrize("whole", [False, True])
def test_zeros_alone_lie_on_an_axis_to_one(whole: bool) -> None:
    line = Series("lag", "#000", [(0.0, 0.0), (2.0, 0.0)])
    texts = [element.text for element in ET.fromstring(Plot("Lag", "s", [line], 2.0, whole=whole).svg()).iter()]
    assert {"0", "1"} <= set(texts)
    plane = Plane("title", "x", "y", [Point("a", "red", 0, 0, (0, 0), (0, 0))]).svg()
    assert plane.count(">1<") == 2
    assert "e-" not in "".join(filter(None, texts)) + plane


def test_points_keep_within_the_plane_with_their_ranges() -> None:
    points = [Point("a", "red", 1, 2, (0.5, 4.9), (1, 9.9)), Point("b", "red", 4.9, 0, (4.9, 4.9), (0, 0))]
    svg = Plane("title", "x", "y", points).svg()
    xs = [float(x) for x in re.findall(r'cx="([\d.]+)"', svg)] + [float(x) for x in re.findall(r"H([\d.]+)M", svg)]
    ys = [float(y) for y in re.findall(r'cy="([\d.]+)"', svg)] + [float(y) for y in re.findall(r"V([\d.]+)", svg)]
    assert all(LEFT <= x <= WIDTH for x in xs)
    assert all(0 <= y <= 300 for y in ys)
    # The second one is near the right edge, and its name goes to the left.
    assert svg.count("text-anchor:end") == 1


def test_names_of_neighbours_turn_away_from_each_other() -> None:
    near = {"low": 1.0, "middle": 1.4, "high": 9.0}
    for order in (("low", "middle", "high"), ("high", "low", "middle"), ("middle", "high", "low")):
        points = [Point(name, "red", 4.0, near[name], (4.0, 4.0), (near[name], near[name])) for name in order]
        svg = Plane("title", "x", "y", points).svg()
        at = {name: float(y) for y, name in re.findall(r'y="([\d.]+)" class="title"[^>]*>(\w+)<', svg)}
        circles = dict(zip(order, [float(y) for y in re.findall(r'cy="([\d.]+)"', svg)], strict=True))
        assert at["middle"] < circles["middle"]
        assert at["low"] > circles["low"]


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


def test_a_logarithmic_plot_begins_and_ends_with_a_power_of_ten() -> None:
    line = Series("model", "red", [(20.0, 1.0), (200.0, 10.0), (2_000.0, 100.0)])
    svg = LogPlot("title", "records/s", "slots", [line], [Dot("a & b", "red", 200.0, 10.0)], [(200.0, "model")]).svg()
    # The last number ends at the edge.
    assert re.findall(r'class="(x|unit)">([\d.kM]+)</text>', svg) == [
        *(("x", "10"), ("x", "100"), ("x", "1k"), ("unit", "10k"))
    ]
    assert re.findall(r'class="y">([\d.kM]+)</text>', svg) == ["1", "10", "100"]
    (points,) = re.findall(r'<path d="M([^"]+)"', svg)
    (first, middle, last) = [tuple(float(number) for number in point.split()) for point in points.split("L")]
    # A straight line: where each is ten times the one before. The dot and the mark are where the line is.
    assert middle[0] - first[0] == pytest.approx(last[0] - middle[0], abs=0.2)
    assert last[1] == TOP
    assert re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg) == [(f"{middle[0]:.1f}", f"{middle[1]:.1f}")]
    assert f'<line x1="{middle[0]:.1f}" x2="{middle[0]:.1f}"' in svg
    assert "a &amp; b" in svg


def test_a_logarithmic_plot_of_one_value_has_a_decade() -> None:
    svg = LogPlot("title", "x", "y", [], [Dot("one", "red", 100.0, 1.0)]).svg()
    assert re.findall(r'class="(?:x|unit)">([\d.kM]+)</text>', svg) == ["100", "1k"]
