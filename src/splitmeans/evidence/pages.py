"""A document of headings, sentences and tables: as text, as Markdown, as a page to print."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from splitmeans.templates import render

_WIDTH = 96
# Marks of Markdown; a row of underscores is a blank to fill in.
_MARKS = re.compile(r"[\\`*\[\]<>#]|(?<!_)_{1,2}(?!_)")


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a document.

    Attributes:
        heading: What it is about.
        text: Paragraphs before the table.
        head: Headings of the table's columns; none without a table.
        rows: Its rows.
        notes: Points after the table.
    """

    heading: str
    text: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def as_text(title: str, sections: Sequence[Section]) -> str:
    """Return a document for any editor; a table has a block of lines for each row."""
    parts = [title, "=" * min(len(title), _WIDTH), ""]
    for section in sections:
        parts += [section.heading, "-" * min(len(section.heading), _WIDTH)]
        parts += [_wrapped(paragraph, hang="") for paragraph in section.text]
        parts += _rows_text(section)
        parts += [_wrapped(f"- {note}", indent="  ") for note in section.notes]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _rows_text(section: Section) -> list[str]:
    """Return a table as lines: a line for each row of two cells, a block for each of more."""
    if len(section.head) == 2:
        return ["", *(_wrapped(f"{name}: {cell}", indent="  ") for name, cell in section.rows), ""]
    blocks: list[str] = []
    for row in section.rows:
        blocks.append("")
        blocks += [
            _wrapped(f"{name}: {cell}", indent="    " if at else "  ")
            for at, (name, cell) in enumerate(zip(section.head, row, strict=True))
        ]
    return [*blocks, ""] if blocks else []


def as_markdown(title: str, sections: Sequence[Section]) -> str:
    """Return a document for a wiki or a word processor."""
    parts = [f"# {_plain(title)}", ""]
    for section in sections:
        parts += [f"## {_plain(section.heading)}", ""]
        for paragraph in section.text:
            parts += [_plain(paragraph), ""]
        if section.rows:
            parts.append(f"| {' | '.join(section.head)} |")
            parts.append("|" + "---|" * len(section.head))
            parts += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in section.rows]
            parts.append("")
        if section.notes:
            parts += [f"- {_plain(note)}" for note in section.notes]
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def as_html(title: str, sections: Sequence[Section], *, signatures: Sequence[str] = ()) -> str:
    """Return a page that prints well: to paper, or to a PDF file from any browser.

    Args:
        title: Heading of the page.
        sections: What is in it.
        signatures: Who may sign the paper; each gets a line.
    """
    return render("document.html.jinja", title=title, sections=sections, signatures=signatures)


def _wrapped(text: str, *, indent: str = "", hang: str = "  ") -> str:
    return textwrap.fill(
        text,
        width=_WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}{hang}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(text: str) -> str:
    """Return text in which nothing is a mark of Markdown; names are other people's words."""
    return _MARKS.sub(r"\\\g<0>", text)


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("\n", " ")
