"""How results and statements look in a notebook: right values, and nothing that HTML misreads."""

import dataclasses
from html.parser import HTMLParser

import numpy as np
import pytest

from splitmeans import InsecureSeededNoise, PrivacyFacts, Result, VerticalKMeans
from splitmeans.plan.settle import make_plan
from splitmeans.result.result import Segmentation
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.synopsis.notebook import centres_table
from splitmeans.templates import render
from tests.result.small_result import small_study, write_small_result

NASTY = "<script>alert(1)</script>\"'&[red]"


class _Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def table_of(item: Segmentation, names: list[str]) -> str:
    """Return segments as a notebook shows them."""
    table = centres_table(item.letters, sizes=item.sizes, centres=item.centres, names=names)
    return render(
        "notebook.html.jinja", strong=[], lines=[], notes=[], tables=[table], assumptions=[]
    )


def check(text: str) -> _Page:
    """Check that the HTML is well formed, holds no script, and fetches and colours nothing."""
    page = _Page(text)
    assert page.open == []
    kinds = {"div", "p", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in page.tags} <= kinds
    for _, attributes in page.tags:
        assert set(attributes) <= {"style", "scope"}
        style = attributes.get("style") or ""
        assert "url(" not in style
        # No colour for text or ground: it must read on a light page and on a dark one.
        assert not {part.split(":")[0] for part in style.split(";")} & {"color", "background"}
    return page


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return Result.read(write_small_result(tmp_path_factory.mktemp("notebook") / "result"))


def test_a_result_shows_its_segments(result):
    page = check(result._repr_html_())
    assert "Result of study bank and insurer" in page.texts
    assert any("the run cost epsilon 1, delta 1e-05" in text for text in page.texts)
    at = page.texts.index("users")
    assert page.texts[at : at + 3] == ["users", "600", "300"]
    at = page.texts.index("bank: income")
    assert page.texts[at : at + 3] == ["bank: income", "2,000", "6,000"]
    assert repr(result) == (
        "<Result study 'bank and insurer', run '1': 2 segments of about 900 users, "
        "3 columns of bank, insurer; published 2026-01-31T12:00:00Z by the server, simulation, not "
        "signed>"
    )
    assert repr(result.published) == "<Segmentation 2 segments as published: A 600, B 300>"


def test_a_statement_has_the_content_of_its_text():
    report = PrivacyFacts.for_study(small_study())
    page = check(report._repr_html_())
    text = report.statement()
    for release in report.releases:
        assert release.what in page.texts
    for observer in report.observers:
        assert not observer.bounds or observer.who in page.texts
        assert observer.who in text
    for assumption in report.assumptions:
        assert assumption in page.texts
    assert any(
        line.startswith("total epsilon 1, delta 1e-05 towards the server and")
        for line in page.texts
    )


def test_warnings_stand_out():
    bad = PrivacyFacts.of(make_plan(small_study()), secure_noise=False)
    assert any("NOTE: INSECURE TEST NOISE" in text for text in check(bad._repr_html_()).texts)


def test_names_are_text():
    study = Study(
        name=NASTY,
        parties=(
            PartySpec(name=NASTY, columns=(Column(name=NASTY, low=0, high=1),)),
            PartySpec(name="b", columns=(Column(name="x", categories=(NASTY, "c")),)),
        ),
        n_clusters=2,
        budget=Budget(epsilon=1.0, delta=1e-5),
    )
    page = check(PrivacyFacts.for_study(study)._repr_html_())
    assert f"Privacy of study {NASTY}" in "".join(page.texts)


def test_column_names_of_a_result_are_text(result):
    page = check(table_of(result.published, [NASTY] * 4))
    assert "".join(page.texts).count(NASTY) == 4


def test_long_results_are_cut_and_say_so(result):
    wide = dataclasses.replace(
        result.published,
        letters=tuple(str(number) for number in range(20)),
        sizes=np.arange(20.0),
        centres=np.zeros((20, 100)),
    )
    page = check(table_of(wide, [f"column {number}" for number in range(100)]))
    assert "column 39" in page.texts
    assert "column 40" not in page.texts
    assert "and 60 more columns, 5 more segments" in page.texts


def test_an_estimator_before_and_after_fitting():
    rows = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    model = VerticalKMeans(n_clusters=2, epsilon=4.0, bounds=(-1, 1), noise=InsecureSeededNoise(1))
    assert "not fitted" in check(model._repr_html_()).texts
    model.fit([rows[:, :2], rows[:, 2:]])
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert bundle["text/html"] == model._repr_html_()
    page = check(bundle["text/html"])
    assert "party2: x0" in page.texts
    shown = [f"{size:,.0f}" for size in model.result_.server.clustering.sizes]
    at = page.texts.index("users")
    assert page.texts[at + 1 : at + 3] == shown
    assert repr(model.result_).startswith("<RunResult 2 segments of about ")
    assert repr(model.synopsis_).startswith("<Synopsis ")
    assert len(repr(model.result_)) < 200
