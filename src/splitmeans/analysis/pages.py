"""The report and its pictures as notebooks show them: closed off, with no script of the page's.

A report is shown in a frame of its own, a picture as an image: neither can touch the notebook.
"""

import base64
import html
import re
from pathlib import Path

from splitmeans._html import bundle
from splitmeans.errors import ParameterError
from splitmeans.report.charts import curve, segment_map
from splitmeans.report.data import ReportData
from splitmeans.report.html import style

PICTURES = ("map", "silhouette", "loss")


class ReportPage:
    """A report as one HTML page."""

    def __init__(self, page: str) -> None:
        self.html = page

    def __repr__(self) -> str:
        return f"<ReportPage of {len(self.html):,} characters; write(path) saves it>"

    def write(self, path: str | Path) -> Path:
        """Write the page into a file."""
        place = Path(path)
        try:
            place.write_text(self.html, encoding="utf-8")
        except OSError as problem:
            raise ParameterError(f"{place}: cannot be written ({problem.strerror})") from problem
        return place

    def _repr_html_(self) -> str:
        return (
            '<iframe title="Report" style="width:100%;height:44rem;border:1px solid gray" '
            f'sandbox="allow-scripts" srcdoc="{html.escape(self.html, quote=True)}"></iframe>'
        )


class Picture:
    """A drawing of the report, as SVG that needs nothing else."""

    def __init__(self, svg: str, *, text: str) -> None:
        self.svg = svg
        self.text = text

    def __repr__(self) -> str:
        return f"<Picture: {self.text}>"

    def write(self, path: str | Path) -> Path:
        """Write the picture into a file that ends in .svg."""
        place = Path(path)
        try:
            place.write_text(self.svg, encoding="utf-8")
        except OSError as problem:
            raise ParameterError(f"{place}: cannot be written ({problem.strerror})") from problem
        return place

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        words = html.escape(self.text, quote=True)
        return (
            f'<img alt="{words}" style="max-width:100%;width:42rem" '
            f'src="data:image/svg+xml;base64,{data}">'
        )

    def _repr_mimebundle_(self, **kwargs: object) -> object:
        return bundle(repr(self), self._repr_html_())


def draw_picture(data: ReportData, what: str, *, k: int) -> Picture:
    """Return one drawing of a report."""
    if what not in PICTURES:
        raise ParameterError(f"what must be one of {', '.join(PICTURES)}, got {what!r}")
    item = next(one for one in data.segmentations if one.k == k)
    if what == "map":
        names = ", ".join(
            f"{one.letter}{f' {one.name}' if one.name else ''} {one.share:.0%}"
            for one in item.segments
        )
        return Picture(_alone(segment_map(data, item)), text=f"map of {k} segments: {names}")
    best = f"{what} by number of segments; the silhouette suggests {data.suggested_k}"
    return Picture(_alone(curve(data, what, title=what.capitalize())), text=best)


def _alone(svg: str) -> str:
    """Return a drawing of the page as a picture of its own, with colours and size."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert size is not None, "every drawing has a size"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[1]}" height="{size[2]}" '
        'font-family="sans-serif" '
    )
    # Attributes without a value are HTML and no XML.
    opened = svg.replace("<svg ", head, 1).replace(" hidden>", ' hidden="">')
    end = opened.index(">") + 1
    return f"{opened[:end]}<style>{html.escape(style(), quote=False)}</style>{opened[end:]}"
