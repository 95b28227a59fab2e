"""Charts are well-formed SVG, whatever they show, and their marks stand where the numbers say."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree as ET

from lance_ops.charts import Mark, Panel, image_address, trend_chart, version_chart

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'a<b>&"c" \x00\x1b 日本 ' + "long " * 20


def points(svg: str) -> list[list[tuple[float, float]]]:
    lines = ET.fromstring(svg).iter(f"{SVG}polyline")
    return [
        [(float(x), float(y)) for x, y in (each.split(",") for each in line.attrib["points"].split())] for line in lines
    ]


def test_a_trend_rises_where_its_values_do_and_breaks_where_one_is_unknown() -> None:
    panels = [Panel("rows", [0, 10, 5]), Panel("cost", [1.0, None, 2.0, 4.0], floor=1.0)]
    rows, before, after = points(trend_chart("t", "version 1", "3", panels))
    (x0, zero), (x1, ten), (x2, five) = rows
    assert x0 < x1 < x2 and zero > five > ten
    assert abs((zero - ten) - 2 * (zero - five)) < 0.1
    assert len(before) == 1 and len(after) == 2
    assert before[0][1] == zero, "the floor is the bottom of the panel"


def test_trends_without_a_spread_or_a_value_are_drawn() -> None:
    [[(_, y)]] = points(trend_chart("t", "1", "1", [Panel("rows", [0])]))
    assert y > 0
    assert points(trend_chart("t", "1", "1", [Panel("rows", [None]), Panel("bytes", [])])) == []


def test_versions_have_the_colour_of_their_kind_and_the_names_at_them() -> None:
    marks = [
        Mark(1, "added", "first"),
        Mark(2, "upkeep", HOSTILE, tags=(HOSTILE,), branches=("trial",)),
        Mark(3, "added"),
    ]
    svg = ET.fromstring(version_chart(HOSTILE, marks, ("other", "added", "upkeep")))
    circles = [each for each in svg.iter(f"{SVG}circle") if each.attrib["r"] == "6"]
    colors = [each.attrib["class"] for each in circles]
    assert colors == ["b", "c", "b"]
    xs = [float(each.attrib["cx"]) for each in circles]
    assert xs[0] < xs[1] < xs[2]
    words = ["".join(each.itertext()) for each in svg.iter(f"{SVG}text")]
    assert "branch trial" in words and {"added", "upkeep"} <= set(words) and "other" not in words
    assert version_chart("none", [], ()).endswith("</svg>")


def test_a_chart_has_both_themes_and_fits_in_an_image() -> None:
    svg = trend_chart("t", "1", "2", [Panel("rows", [1, 2])])
    assert "prefers-color-scheme: dark" in svg
    head, _, data = image_address(svg).partition(",")
    assert head == "data:image/svg+xml;base64" and b64decode(data).decode() == svg
