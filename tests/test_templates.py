"""Every page that is written: whatever names hold, its elements are those that templates wrote."""

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from jinja2 import UndefinedError

import splitmeans
from splitmeans import templates
from splitmeans.analysis.pages import PICTURES, ReportPage, draw_picture
from splitmeans.evidence.dpia import dpia_of
from splitmeans.evidence.pages import as_html
from splitmeans.insights.two_columns import PairCell, PairTable, TwoColumns
from splitmeans.intervals.overlap import Count, Overlap, Share
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.report.build import build_report
from splitmeans.report.data import ReportData
from splitmeans.report.html import render
from splitmeans.result.notebook import result_html
from splitmeans.result.result import Result
from splitmeans.study import Study
from splitmeans.synopsis.notebook import model_html
from tests.result.small_result import small_study, write_small_result

# Ends whatever a name may stand in: an attribute, an element, a script, a style sheet, a frame.
ENDS = "</title></script></style></svg></pre>--><!--{{ 7 * 7 }}"
HOSTILE = f"""=cmd|'"><evil onload="alert(1)">&lt;{ENDS}"""
PLAIN = "plain"
SOURCE = Path(splitmeans.__file__).parent


def named(value: Any, name: str) -> Any:
    """Return plain values in which every text ends in a name."""
    if isinstance(value, str):
        return value + name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **{key: named(one, name) for key, one in fields.items()})
    return tuple(named(one, name) for one in value) if isinstance(value, tuple) else value


def odd_study(name: str) -> Study:
    """Return the small study with a name wherever a study has one."""
    bank, insurer = small_study().parties
    income, region = bank.columns
    region = dataclasses.replace(region, categories=(f"north{name}", f"south{name}"))
    # A study refuses "=" in a column's name.
    income = dataclasses.replace(income, name=f"income{name.replace('=', '')}")
    bank = dataclasses.replace(bank, name=f"bank{name}", columns=(income, region))
    return small_study(name=f"study{name}", parties=(bank, insurer))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("odd")
    return {
        name: Result.read(write_small_result(folder / str(at), study=odd_study(name)))
        for at, name in enumerate((PLAIN, HOSTILE))
    }


@pytest.fixture(scope="module")
def data(results: dict[str, Result]) -> ReportData:
    """A report with every part that a page can have."""
    result = results[PLAIN]
    found = build_report(result, names={"A": "saving"}, compared_with=result)
    one, two = (Count(parties=(name,), users=9.0, low=1.0, high=20.0) for name in ("a", "b"))
    both = Count(parties=("a", "b"), users=9.0, low=1.0, high=20.0)
    share = Share(of="a", at="b", share=0.5, low=0.1, high=0.9)
    cell = PairCell(users=9.0, low=8.0, high=10.0, independent=4.0)
    pair = PairTable(
        columns=("a: x", "b: y"),
        bins=(("u",), ("v",)),
        cells=((cell,),),
        total=20.0,
        dependence=0.3,
    )
    return dataclasses.replace(
        found,
        remark="fewer",
        two_columns=TwoColumns(tables=(pair,), withheld="", left_out=2),
        overlap=Overlap(
            patterns=(both, one), pairs=(both,), parties=(one, two), everyone=both, shares=(share,)
        ),
        privacy=dataclasses.replace(found.privacy, caveats=("noise",)),
    )


def _report(data: ReportData, result: Result, name: str) -> str:
    return render(named(data, name))


def _counts(data: ReportData, result: Result, name: str) -> str:
    return render(named(dataclasses.replace(data, segmentations=(), asked=1), name))


def _result(data: ReportData, result: Result, name: str) -> str:
    return result_html(result)


def _statement(data: ReportData, result: Result, name: str) -> str:
    return PrivacyFacts.for_study(odd_study(name))._repr_html_()


def _model(data: ReportData, result: Result, name: str) -> str:
    found = SimpleNamespace(sizes=result.published_sizes, centres=result.published_centres)
    privacy = PrivacyFacts.for_study(odd_study(name))
    return model_html(name, found=(result.synopsis, found), privacy=privacy, study=odd_study(name))  # type: ignore[arg-type]


def _document(data: ReportData, result: Result, name: str) -> str:
    title, sections = dpia_of(odd_study(name))
    return as_html(title, named(sections, name), signatures=(name,))


def _frame(data: ReportData, result: Result, name: str) -> str:
    return ReportPage(name)._repr_html_()


def _picture(data: ReportData, result: Result, name: str) -> str:
    return draw_picture(named(data, name), "map", k=data.published.k)._repr_html_()


def _drawing(data: ReportData, result: Result, name: str) -> str:
    return draw_picture(named(data, name), "map", k=data.published.k).svg


def _relay(data: ReportData, result: Result, name: str) -> str:
    return templates.render("relay.html.jinja", status=name, version=name, uptime_seconds=1)


Page = Callable[[ReportData, Result, str], str]
PAGES: tuple[Page, ...] = (
    *(_report, _counts, _result, _statement, _model, _document, _frame, _picture, _drawing, _relay),
)


class Seen(HTMLParser):
    """What a browser makes of a page: elements with their attributes, and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.texts: list[str] = []
        self.targets: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [key for key, _ in attrs]))
        self.texts += [value or "" for _, value in attrs]
        self.targets += [value or "" for key, value in attrs if key in ("src", "href", "action")]

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", []))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def is_safe(page: Page, data: ReportData, results: dict[str, Result]) -> bool:
    """Return whether names change no element of a page, and are shown as they are."""
    plain, hostile = (Seen(page(data, results[name], name)) for name in (PLAIN, HOSTILE))
    shown = any(HOSTILE in text for text in hostile.texts)
    return plain.elements == hostile.elements and shown


@pytest.mark.parametrize("page", PAGES)
def test_names_are_text(page: Page, data: ReportData, results: dict[str, Result]) -> None:
    assert is_safe(page, data, results)


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_do_not_escape_are_caught(
    page: Page, data: ReportData, results: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = templates.ENVIRONMENT.overlay(autoescape=False)
    monkeypatch.setattr(templates, "ENVIRONMENT", twin)
    assert not is_safe(page, data, results)


@pytest.mark.parametrize("page", PAGES)
def test_pages_ask_for_nothing_from_outside(
    page: Page, data: ReportData, results: dict[str, Result]
) -> None:
    text = page(data, results[HOSTILE], HOSTILE)
    assert all(target.startswith(("#", "data:")) for target in Seen(text).targets)
    assert "url(" not in text
    assert "@import" not in text
    if text.startswith("<!doctype") and page is not _relay:  # the relay sends it as a header
        assert "content=\"default-src 'none'; " in text


@pytest.mark.parametrize("what", PICTURES)
def test_a_picture_is_xml_with_colours_of_its_own(data: ReportData, what: str) -> None:
    drawn = ElementTree.fromstring(draw_picture(data, what, k=data.published.k).svg)
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    style = drawn.findtext("{http://www.w3.org/2000/svg}style")
    assert style is not None
    assert style == templates.ENVIRONMENT.get_template("report.css").render()


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="version"):
        templates.render("relay.html.jinja", status="ok", uptime_seconds=1)


def test_only_constants_are_not_escaped() -> None:
    for path in (SOURCE / "templates").iterdir():
        if path.suffix != ".py" and path.is_file():
            kept = re.sub(r'"[^"{}]*"\|safe', "", path.read_text(encoding="utf-8"))
            assert not re.search(r"\|\s*safe|autoescape|Markup", kept), path.name


def test_python_writes_no_markup() -> None:
    writers = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"</[a-z]|<(div|p|table|span|svg|html)[ >]|\bMarkup\b|html\.escape", path.read_text()
        )
    ]
    assert writers == []
