"""Small, self-contained HTML for notebooks: what results, statements and models are drawn with.

Names of studies, parties and columns come from files that others wrote, so every text is escaped
here and nowhere else. No script, no style sheet, and no colour of its own: borders are translucent
and text is the notebook's, so that it reads on a light and on a dark page.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

_LINE = "1px solid rgba(128,128,128,0.4)"
_CELL = f"padding:0.2em 0.7em;border-bottom:{_LINE};vertical-align:top;"
_TEXT, _NUMBER = _CELL + "text-align:left", _CELL + "text-align:right"


def bundle(text: str, page: str) -> Mapping[str, str]:
    """Return both forms as notebooks ask for them."""
    return {"text/plain": text, "text/html": page}


def box(*parts: str) -> str:
    """Return parts one below the other; what is too wide scrolls."""
    return f'<div style="overflow-x:auto;max-width:100%">{"".join(parts)}</div>'


def line(text: str, *, strong: bool = False) -> str:
    """Return a line of text."""
    weight = "bold" if strong else "normal"
    return f'<p style="margin:0.3em 0;font-weight:{weight}">{_escape(text)}</p>'


def bullets(texts: Sequence[str]) -> str:
    """Return a list of texts."""
    items = "".join(f"<li>{_escape(text)}</li>" for text in texts)
    return f'<ul style="margin:0.3em 0">{items}</ul>'


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False
) -> str:
    """Return a table whose first column names the rows; the others are right-aligned numbers."""
    style = _NUMBER if numbers else _TEXT
    top = "".join(
        f'<th scope="col" style="{style if at else _TEXT}">{_escape(text)}</th>'
        for at, text in enumerate(head)
    )
    body = "".join(
        f'<tr><th scope="row" style="{_TEXT};font-weight:normal">{_escape(row[0])}</th>'
        + "".join(f'<td style="{style}">{_escape(text)}</td>' for text in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="border-collapse:collapse;margin:0.5em 0">'
        f'<caption style="text-align:left;caption-side:top">{_escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def _escape(text: Any) -> str:
    return html.escape(str(text), quote=True)
