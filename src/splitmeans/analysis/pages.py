"""The report and its pictures as notebooks show them: closed off, with no script of the page's.

A report is shown in a frame of its own, a picture as an image: neither can touch the notebook.
"""

import base64
from pathlib import Path

from splitmeans.errors import ParameterError
from splitmeans.report.charts import MEASURES, curve, segment_map
from splitmeans.report.data import ReportData
from splitmeans.templates import render

PICTURES = ("map", *MEASURES)


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
        return render("frame.html.jinja", page=self.html)


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
        svg = base64.b64encode(self.svg.encode()).decode()
        return render("picture.html.jinja", text=self.text, svg=svg)

    def _repr_mimebundle_(self, **kwargs: object) -> object:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def draw_picture(data: ReportData, what: str, *, k: int) -> Picture:
    """Return one drawing of a report."""
    if what not in PICTURES:
        raise ParameterError(f"what must be one of {', '.join(PICTURES)}, got {what!r}")
    if what == "map":
        item = next(one for one in data.segmentations if one.k == k)
        names = ", ".join(
            f"{one.letter}{f' {one.name}' if one.name else ''} {one.share:.0%}"
            for one in item.segments
        )
        drawing, text = segment_map(data, item), f"map of {k} segments: {names}"
    else:
        drawing = curve(data, what)
        text = f"{what} by number of segments; the silhouette suggests {data.suggested_k}"
    return Picture(render("picture.svg.jinja", what=what, drawing=drawing), text=text)
