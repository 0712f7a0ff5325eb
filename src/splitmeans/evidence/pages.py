"""A document of headings, sentences and tables: as text, as Markdown, as a page to print."""

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_WIDTH = 96
# Marks of Markdown; a row of underscores is a blank to fill in.
_MARKS = re.compile(r"[\\`*\[\]<>#]|(?<!_)_{1,2}(?!_)")

# For paper: no colours that matter, no script, A4 or Letter, rows that stay whole.
_STYLE = """
@page { margin: 18mm 16mm 20mm; }
body { font: 11pt/1.45 Georgia, "Times New Roman", serif; color: #000; background: #fff;
  max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { border: 1px solid #777; padding: .3rem .5rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { background: #eee; } thead { display: table-header-group; }
.sign td { height: 2.6rem; }
@media print { body { margin: 0; max-width: none; padding: 0; font-size: 10pt; }
  tr, li { break-inside: avoid; } h2 { break-after: avoid; } a { color: inherit; } }
"""


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
    body = "".join(_section_html(section) for section in sections)
    if signatures:
        lines = "".join(
            f"<tr><td>{html.escape(who)}</td><td></td><td></td></tr>" for who in signatures
        )
        body += (
            '<h2>Signatures</h2><table class="sign"><thead><tr><th scope="col">For</th>'
            '<th scope="col">Place and date</th><th scope="col">Name and signature</th></tr>'
            f"</thead><tbody>{lines}</tbody></table>"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _section_html(section: Section) -> str:
    text = "".join(f"<p>{html.escape(paragraph)}</p>\n" for paragraph in section.text)
    table = ""
    if section.rows:
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in section.head)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in section.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>\n"
    notes = "".join(f"<li>{html.escape(note)}</li>\n" for note in section.notes)
    listed = f"<ul>\n{notes}</ul>\n" if notes else ""
    return f"<h2>{html.escape(section.heading)}</h2>\n{text}{table}{listed}"


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
