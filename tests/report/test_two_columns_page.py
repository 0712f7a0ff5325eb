"""The part of the page about two columns of different parties."""

import dataclasses
import re
from types import SimpleNamespace

import pytest

from splitmeans import figures, templates
from splitmeans.insights.two_columns import MOST_LEVELS, PairCell, PairTable, TwoColumns
from splitmeans.report import words
from splitmeans.report.html import render
from splitmeans.report.words import cell_step, share_interval
from tests.report.test_page import Page

HOSTILE = "</td><script>alert(1)</script>\"'&_x"


def cell(users, low, high, independent=25.0):
    return PairCell(users=users, low=low, high=high, independent=independent)


TABLE = PairTable(
    columns=("bank: income", "shop: visits"),
    bins=(("up to 3", "above 3"), ("rare", "often")),
    cells=(
        (cell(56.0, 50.0, 62.0), cell(10.0, 4.0, 16.0)),
        (cell(8.0, 0.0, 26.0), cell(26.0, 20.0, 32.0)),
    ),
    total=100.0,
    dependence=0.456,
)


def shown(*tables, withheld="", left_out=0):
    found = TwoColumns(tables=tables, withheld=withheld, left_out=left_out)
    return templates.render(
        "two_columns.html.jinja",
        data=SimpleNamespace(two_columns=found),
        most_levels=MOST_LEVELS,
        words=words,
        figures=figures,
    )


def test_cells_have_share_interval_and_words():
    text = shown(TABLE)
    Page(text)
    cells = re.findall(r'<td( class="h.\d")?>(.*?)</td>', text)
    kinds = [kind for kind, _ in cells]
    assert kinds == [' class="hp3"', ' class="hm3"', ' class="hm1"', ""]
    plain = [re.sub(r"<[^>]*>", "", inside).replace("\u202f", " ") for _, inside in cells]
    assert (
        plain[0]
        == "56 %▲▲, 95 % interval 50 % to 62 %, far more than independent columns would have"
    )
    assert plain[1].startswith("10 %▼▼, 95 % interval 4 % to 16 %, far fewer")
    assert plain[2].endswith("fewer than independent columns would have, or noise")
    assert plain[3] == "26 %, 95 % interval 20 % to 32 %"
    assert "Dependence 0.46" in text


def test_the_table_has_heads_and_can_be_scrolled_by_keyboard():
    page = Page(shown(TABLE))
    scopes = [attributes.get("scope") for tag, attributes in page.elements if tag == "th"]
    assert None not in scopes
    regions = [one for tag, one in page.elements if one.get("class") == "scroll"]
    assert len(regions) == 2  # the heat map, and the same in users
    assert all(one["tabindex"] == "0" and one["role"] == "region" for one in regions)


def test_names_are_text():
    names = (HOSTILE, "fine")
    text = shown(dataclasses.replace(TABLE, columns=names, bins=(names, names)))
    assert "<script" not in text
    Page(text)


@pytest.mark.parametrize(
    ("one", "size"),
    [
        (cell(60, 50, 70), 3),
        (cell(40, 30, 50), 2),
        (cell(40, 20, 60), 1),
        (cell(26, 20, 60), 0),
        (cell(18, 0, 30), -1),
        (cell(18, 12, 24), -2),
        (cell(0, 0, 10), -3),
        (cell(0, 0, 0, independent=0.0), 0),
    ],
)
def test_steps(one, size):
    assert cell_step(one) == size


def test_rounding_never_makes_an_interval_shorter():
    assert share_interval(0.119, 0.201).replace("\u202f", "") == "11% to 21%"
    assert share_interval(0.0119, 0.0201).replace("\u202f", "") == "1.1% to 2.1%"
    assert share_interval(0.07, 0.29).replace("\u202f", "") == "7% to 29%"


def test_the_reason_stands_where_there_is_no_table(data):
    text = shown(withheld="Nobody knows <why>.", left_out=2)
    assert "<table" not in text
    assert "Nobody knows &lt;why&gt;." in text
    assert "2 columns have more than 12 categories" in text
    without = dataclasses.replace(data, two_columns=None)
    assert "two-columns" not in render(without)


def test_the_page_has_the_part_and_a_way_to_it(data):
    found = TwoColumns(tables=(TABLE, TABLE), withheld="", left_out=0)
    text = render(dataclasses.replace(data, two_columns=found))
    Page(text)
    assert text.count('href="#two-columns"') == text.count('id="two-columns"') == 1
