"""The page: nothing from outside, nothing broken, nothing that a name could inject."""

import base64
import dataclasses
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

from splitmeans import templates
from splitmeans.report.data import ReportData
from splitmeans.report.html import MOST_COLUMNS, render
from splitmeans.report.words import (
    COLOURS,
    colour_of,
    compared,
    interval_text,
    percent,
    step,
    users,
    value,
)

LIMIT = 3_000_000
VOID = {"meta", "input", "wbr", "br"}


class Page(HTMLParser):
    """Collects elements and checks that every one is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        self.text[where] = self.text.get(where, "") + data


@pytest.fixture(scope="module")
def text(data: ReportData) -> str:
    return render(data)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_nothing_comes_from_outside(text, page):
    assert "//" not in re.sub(r"\s//[^\n]*", "", text)  # no address; comments of the script aside
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attributes
        if "href" in attributes:
            assert (attributes["href"] or "").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    assert "@import" not in text
    assert "url(" not in text


def test_ids_are_unique_and_references_resolve(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for target in (attributes.get(name) or "").split():
                assert target in ids, target
        href = attributes.get("href") or ""
        assert not href or href[1:] in ids


def test_headings_go_down_one_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_chart_has_a_name_and_every_table_a_caption(page):
    kinds = [tag for tag, _ in page.elements]
    assert kinds.count("table") == kinds.count("caption")
    for tag, attributes in page.elements:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-labelledby"]


def test_the_json_in_the_page_is_the_data(text, data):
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text)
    assert found is not None
    assert json.loads(found[1]) == json.loads(data.to_json())


def test_the_policy_allows_the_one_script(text):
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in text


def test_published_panels_show_and_others_hide(page, data):
    for _, attributes in page.elements:
        if "data-k" in attributes:
            shown = int(attributes["data-k"] or 0) == data.published.k
            assert ("hidden" not in attributes) == shown


def test_names_are_text(data):
    hostile = "</script><script>alert(1)</script>\"'&amp;"
    columns = tuple(dataclasses.replace(column, name=hostile) for column in data.columns)
    facts = ((hostile, hostile),)
    changed = dataclasses.replace(data, title=hostile, columns=columns, facts=facts)
    text = render(changed)
    assert "<script>alert" not in text
    page = Page(text)
    assert hostile in page.text["h1"]
    found = re.search(r'id="report-data">(.*?)</script>', text)
    assert found is not None
    assert json.loads(found[1])["title"] == hostile


def test_the_wording_of_the_statement(text, data):
    for view in data.privacy.observers:
        assert escape(view.sees) in text
    for assumption in data.privacy.assumptions:
        assert escape(assumption) in text
    assert "no guarantee" in text  # server and a party together


def large(data: ReportData, *, n_columns: int) -> ReportData:
    """A report with many columns, all numbers of segments and a full map."""
    rng = np.random.default_rng(1)
    columns = tuple(
        dataclasses.replace(data.columns[0], name=f"column_number_{at}", category=None)
        for at in range(n_columns)
    )
    segmentations = []
    for k in range(2, 13):
        segments = tuple(
            dataclasses.replace(
                data.published.segments[0],
                letter=chr(65 + at),
                centre=tuple(rng.uniform(0, 8000, n_columns).tolist()),
                difference=tuple(rng.normal(size=n_columns).tolist()),
                standing_out=tuple(range(5)),
                x=float(rng.normal()),
                y=float(rng.normal()),
            )
            for at in range(k)
        )
        segmentations.append(
            dataclasses.replace(
                data.published,
                k=k,
                published=k == 5,
                segments=segments,
                of_node=tuple(rng.integers(k, size=250).tolist()),
            )
        )
    places = tuple(rng.normal(size=250).tolist())
    many = dataclasses.replace(
        data.map, x=places, y=places[::-1], users=tuple(rng.uniform(1, 900, 250).tolist())
    )
    return dataclasses.replace(data, columns=columns, segmentations=tuple(segmentations), map=many)


@pytest.mark.parametrize("n_columns", [40, 5000])
def test_the_page_stays_small(data, n_columns):
    text = render(large(data, n_columns=n_columns))
    assert len(text.encode()) < LIMIT
    Page(text)
    left_out = max(0, n_columns - MOST_COLUMNS)
    assert (f"{left_out} more are in the JSON data" in text) == (left_out > 0)


# ---- the privacy part ----


def privacy_text(data, **changes):
    privacy = dataclasses.replace(data.privacy, **changes)
    return templates.render("privacy.html.jinja", privacy=privacy, statement=data.statement)


def test_every_bound_is_shown_with_what_it_means(data):
    text = privacy_text(data)
    for observer in data.privacy.observers:
        for bound in observer.bounds:
            assert escape(f"{bound.case}: ") in text
            assert escape(bound.text) in text
    assert "2.72 times as likely, guesses right in 5" in text
    assert "<dt>epsilon, server and readers</dt>" in text
    assert "<dt>epsilon, another party</dt>" in text
    assert "times as likely in one case as in the other, plus delta" in text
    assert "warning" not in text
    assert "do not add up to the total" in text


def test_test_noise_is_said(data):
    text = privacy_text(data, secure_noise=False, caveats=("INSECURE TEST NOISE",))
    assert "INSECURE TEST NOISE" in text


# ---- numbers ----


@pytest.mark.parametrize(
    ("high", "number", "expected"),
    [
        (8000, 4637.6, "4,638"),
        (100, 59.06, "59.1"),
        (8, 0.9512, "0.95"),
        (1, 0.12345, "0.123"),
        (1e12, 123456789.0, "1.235e+08"),
    ],
)
def test_values_have_the_digits_of_their_range(data, high, number, expected):
    column = dataclasses.replace(data.columns[0], low=0.0, high=float(high))
    assert value(number, column) == expected


def test_shares_are_per_cent(data):
    assert value(0.524, data.columns[1]) == "52\u202f%"
    assert percent(0.254) == "25\u202f%"
    assert percent(0.0312) == "3.1\u202f%"


def test_users_are_rounded_to_what_is_known():
    assert users(5142.4) == "5,142"
    assert users(5142.4, (5000.0, 5340.0)) == "5,140"
    assert users(5142.4, (3500.0, 6900.0)) == "5,100"
    assert users(5142.4, (5142.0, 5143.0)) == "5,142"


def test_rounding_never_makes_an_interval_shorter():
    assert interval_text((521.6, 678.4)) == "520 to 680"
    assert interval_text((529.0, 671.0)) == "520 to 680"
    assert interval_text((0.0, 88.4)) == "0 to 90"
    assert interval_text((7.4, 8.1)) == "7 to 9"
    assert interval_text(None) == "not known"


@pytest.mark.parametrize(
    ("difference", "size", "words"),
    [
        (0.1, 0, "about average"),
        (-0.3, -1, "somewhat below"),
        (0.8, 2, "clearly above"),
        (-1.5, -3, "far below"),
    ],
)
def test_differences_in_steps_and_words(difference, size, words):
    assert step(difference) == size
    assert compared(difference) == words


def test_colours():
    assert [colour_of(letter) for letter in ("A", "B", "L", "M")] == [0, 1, 11, 12 % COLOURS]
