"""The report as one HTML file that needs nothing else: no network, no other file.

Panels for all k are in the page; a short script of our own shows one of them. Without scripts the
published segments are shown. The content security policy forbids every request and every script
but that one. Of a run that counted nobody the page has no segments and no script.
"""

import numpy as np

from splitmeans import figures, templates
from splitmeans.insights.two_columns import MOST_LEVELS
from splitmeans.report import words
from splitmeans.report.charts import MEASURES, curve, segment_map
from splitmeans.report.data import ReportData

# With more columns than this the page would outgrow its limit; the rest is in the JSON data.
MOST_COLUMNS = 120


def render(data: ReportData) -> str:
    """Return the page."""
    return templates.render(
        "report.html.jinja",
        data=data,
        shown=_most_telling(data),
        maps={item.k: segment_map(data, item) for item in data.segmentations},
        curves={what: curve(data, what) for what in MEASURES if data.segmentations},
        most_levels=MOST_LEVELS,
        words=words,
        figures=figures,
    )


def _most_telling(data: ReportData) -> ReportData:
    """Keep the columns in which segments differ most, if there are too many for a page."""
    if len(data.columns) <= MOST_COLUMNS:
        return data
    furthest = np.abs([segment.difference for segment in data.published.segments]).max(axis=0)
    best = np.argsort(-furthest, kind="stable")[:MOST_COLUMNS]
    return data.with_columns(sorted(best.tolist()))
