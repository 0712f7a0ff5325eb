"""The impact assessment: what a study says is in it, what only people know is blank."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitmeans.cli.study import app
from splitmeans.evidence.dpia import BLANK, dpia_of
from splitmeans.evidence.pages import Section, as_html, as_markdown, as_text
from splitmeans.study import Budget, Column, IdRules, PartySpec
from tests.scene import keyed_study, make_study

DOCS = Path(__file__).parents[2] / "docs" / "guides"

ODD = make_study(
    name="odd | names <b>",
    parties=(
        PartySpec(
            name="Bänk & Söhne",
            columns=(
                Column(name="income|net", low=-5, high=9e5),
                Column(name="region_*", categories=("north", "<south>", "a|b")),
                Column(name="learned", bounds="private"),
                Column(name="kinds", categories="open"),
            ),
        ),
        PartySpec(name="shop", columns=(Column(name="visits", low=0, high=30),)),
    ),
    n_local_clusters="auto",
    expected_users=50_000,
    budget=Budget(epsilon=4, delta=1e-6),
)


def test_the_page_has_the_sections_of_the_document() -> None:
    page = (DOCS / "dpia.md").read_text(encoding="utf-8")
    _, sections = dpia_of(keyed_study())
    headings = [section.heading for section in sections]
    assert re.findall(r"^## (.*)$", page, flags=re.MULTILINE) == headings


def test_every_column_and_party_is_there_and_the_lawful_basis_is_blank() -> None:
    title, sections = dpia_of(ODD)
    text = " ".join(as_text(title, sections).split())
    for party in ODD.parties:
        assert party.name in text
        for column in party.columns:
            assert text.count(column.name) >= 2
    rows = {row[0]: row[1] for section in sections for row in section.rows if len(row) == 2}
    assert rows["Lawful basis (Article 6 GDPR), for each organisation"] == BLANK
    assert rows["Purpose of finding the segments"] == BLANK
    assert "50,000" in text
    assert "its bounds, found in the table with noise" in text
    assert "a number; the run learns its bounds" in text  # and not those that stand for them
    assert "names of categories that many people have" in text


@pytest.mark.parametrize("form", [as_text, as_markdown, as_html])
def test_names_are_no_markup(form) -> None:  # type: ignore[no-untyped-def]
    written = form(*dpia_of(ODD))
    if form is as_html:
        assert "<b>" not in written
        assert "<south>" not in written
        assert "<script" not in written
    if form is as_markdown:
        tables = [line for line in written.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables}) <= 4
        assert "income\\|net" in written
        assert BLANK in written


def test_text_has_no_line_that_is_too_long() -> None:
    section = Section(heading="H", text=("word " * 60,), head=("a", "b"), rows=(("x", "y " * 90),))
    assert max(len(line) for line in as_text("T", [section]).splitlines()) <= 96


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(keyed_study().to_toml())
    runner = CliRunner()
    for name in ("dpia.md", "dpia.txt", "dpia.html"):
        done = runner.invoke(app, ["dpia", str(file), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.exception
        assert (tmp_path / name).read_text(encoding="utf-8").count(BLANK) > 20
    assert (
        "# Data protection impact assessment: small"
        in runner.invoke(app, ["dpia", str(file)]).stdout
    )
    wrong = runner.invoke(app, ["dpia", str(file), "-o", str(tmp_path / "dpia.pdf")])
    assert "must end in .md, .txt, .html" in str(wrong.exception)


def test_a_study_of_counts_alone_has_no_empty_table_and_no_segments() -> None:
    study = make_study(
        parties=(
            PartySpec(name="bank", columns=(), id_column="customer"),
            PartySpec(name="shop", columns=()),
        ),
        n_clusters=1,
        n_local_clusters="auto",
        ids=IdRules(type="integer"),
    )
    title, sections = dpia_of(study)
    for section in sections:
        assert bool(section.head) == bool(section.rows), section.heading
    subjects = next(section for section in sections if "data subjects" in section.heading)
    assert [row[:3] for row in subjects.rows] == [
        ("bank", "customer", "identifies people"),
        ("shop", "id", "identifies people"),
    ]
    text = as_text(title, sections)
    for word in ("0 columns", "find 1 groups", "number of the group", "savings"):
        assert word not in text
    for section in sections:
        if "kept" not in section.heading:
            assert "segment" not in " ".join((*section.text, *sum(section.rows, ()))).lower()
