"""The report as one HTML file that needs nothing else: no network, no other file.

Panels for all k are in the page; a short script of our own shows one of them. Without scripts the
published segments are shown. The content security policy forbids every request and every script
but that one.
"""

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from string import Template

import numpy as np

from splitmeans.figures import digits, fixed
from splitmeans.report.charts import curve, map_table, segment_map
from splitmeans.report.data import MapInfo, ReportData, SegmentationInfo
from splitmeans.report.drift_page import drift_section
from splitmeans.report.overlap_page import overlap_section
from splitmeans.report.partners_page import partners_page
from splitmeans.report.privacy_page import privacy_page, warning_box
from splitmeans.report.profiles import cards, heat_map, size_table, strip
from splitmeans.report.two_columns_page import two_columns_link, two_columns_section
from splitmeans.report.words import escape, heads, interval_text, percent, table, users

# With more columns than this the page would outgrow its limit; the rest is in the JSON data.
MOST_COLUMNS = 120


def render(data: ReportData) -> str:
    """Return the page; of a run that counted nobody it has no segments and no script."""
    own = _segment_parts(data) if data.segmentations else _nobody_parts(data)
    values = {
        "title": escape(data.title),
        "style": style(),
        "version": escape(data.version),
        "warning": warning_box(data.privacy),
        "origin": _origin(data),
        "privacy": privacy_page(data.privacy),
        "facts": _facts(data),
    }
    return _filled("page.html", values | own)


def _segment_parts(data: ReportData) -> dict[str, str]:
    shown = _most_telling(data)
    script = _asset("report.js")
    panels = {
        "segments": _panels(shown, lambda item: strip(item) + cards(item, shown.columns)),
        "sizes": _panels(data, size_table),
        "uncertainty": escape(data.uncertainty),
        "map": _panels(data, lambda item: segment_map(data, item)),
        "map_note": _map_note(data),
        "map_table": _panels(data, map_table),
        "heat": _panels(shown, lambda item: heat_map(shown, item)),
        "heat_note": _heat_note(shown),
        "partners": partners_page(data),
        "two_columns": two_columns_section(data.two_columns),
        "curves": _curves(data),
        "k_note": _k_note(data),
        "k_table": _k_table(data),
    }
    return {
        "policy": _policy(script),
        "first_part": "segments",
        "lead": _lead(data),
        "controls": _filled(
            "controls.html",
            {"slider": _slider(data), "two_columns": two_columns_link(data.two_columns)},
        ),
        "panels": _filled("panels.html", panels)
        + overlap_section(data.overlap)
        + drift_section(data.drift),
        "privacy_class": "page",
        "json": _json_for_html(shown),
        "script": f"<script>{script}</script>\n",
    }


def _nobody_parts(data: ReportData) -> dict[str, str]:
    return {
        "policy": "default-src 'none'; style-src 'unsafe-inline'",
        "first_part": "counts" if data.overlap else "privacy statement",
        "lead": _counts_lead(data) or "<strong>No segments.</strong>",
        "controls": "",
        "panels": overlap_section(data.overlap, first=True) + drift_section(data.drift),
        "privacy_class": "page" if data.overlap else "first",
        "json": _json_for_html(data),
        "script": "",
    }


def _filled(name: str, values: dict[str, str]) -> str:
    return Template(_asset(name)).substitute(values)


def _origin(data: ReportData) -> str:
    """Return date and signature, and what to know about the number of segments."""
    note = ""
    if data.remark is not None:
        note = f'</p><p class="warning"><strong>Note.</strong> {escape(data.remark)}'
    return f"{escape(data.origin[0].upper() + data.origin[1:])}.{note}"


def _asset(name: str) -> str:
    return (resources.files("splitmeans.report") / "assets" / name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style sheet, with colours for light and dark."""
    # One list of dark colours, for those who ask for dark and for systems that are dark.
    return _asset("report.css").replace("/* dark colours */", _asset("dark.css"))


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"


def _json_for_html(data: ReportData) -> str:
    # "<" could end the element that holds the data.
    return data.to_json().replace("<", "\\u003c")


def _most_telling(data: ReportData) -> ReportData:
    """Keep the columns in which segments differ most, if there are too many for a page."""
    if len(data.columns) <= MOST_COLUMNS:
        return data
    furthest = np.abs([segment.difference for segment in data.published.segments]).max(axis=0)
    best = np.argsort(-furthest, kind="stable")[:MOST_COLUMNS]
    return data.with_columns(sorted(best.tolist()))


def _panels(data: ReportData, draw: Callable[[SegmentationInfo], str]) -> str:
    """Return what `draw` makes of each k; all but the published one are hidden."""
    return "".join(
        f'<div class="panel" data-k="{item.k}"{"" if item.published else " hidden"}>'
        f"{draw(item)}</div>"
        for item in data.segmentations
    )


def _lead(data: ReportData) -> str:
    n_lines = len(data.columns) + data.columns_left_out
    with_categories = f" ({n_lines} with their categories)" if n_lines > data.n_columns else ""
    texts = []
    for item in data.segmentations:
        kind = "as published" if item.published else "found again on the published grid"
        hidden = "" if item.published else " hidden"
        texts.append(f'<span data-k="{item.k}"{hidden}>{item.k} segments, {kind}</span>')
    about = f"about {users(data.users, data.users_interval)} users"
    if data.users_interval is not None:
        about += f" (95\u202f% interval {interval_text(data.users_interval)})"
    return (
        f"<strong>{''.join(texts)}</strong>, of {about} in {data.n_columns} "
        f"columns{with_categories} of {len(data.parties)} organisations."
    )


def _counts_lead(data: ReportData) -> str:
    """Return what a study of counts alone found, nothing for others."""
    if data.overlap is None or data.asked != 1:
        return ""
    shared = data.overlap.at_all
    ends = (shared.low, shared.high)
    return (
        f"<strong>About {users(shared.users, ends)} users are at all {len(data.parties)} "
        f"organisations</strong> (95\u202f% interval {interval_text(ends)}). The study asked for "
        "counts alone: no column was read, and there are no segments."
    )


def _slider(data: ReportData) -> str:
    ks = [item.k for item in data.segmentations]
    at = ks.index(data.published.k)
    return (
        f'<input type="range" id="k-slider" min="0" max="{len(ks) - 1}" step="1" value="{at}" '
        f'data-ks="{",".join(str(k) for k in ks)}" data-published="{data.published.k}" '
        f'aria-valuetext="{ks[at]} segments">'
        f'<output id="k-shown" for="k-slider">{ks[at]}</output>'
    )


def _map_note(data: ReportData) -> str:
    info = data.map
    share = sum(info.explained)
    if info.pseudo_users:
        what = (
            f"Each circle stands for about {users(info.users[0])} users, where released points say "
            "that users are: made up, none of them is a person. A line ties it to its segment."
        )
    else:
        what = (
            "Each circle is a grid cell; its area is the number of users, and a line ties it to "
            f"its segment. The {len(info.x)} largest cells are drawn; they hold "
            f"{percent(info.users_shown)} of the users."
        )
    return (
        f"{what} The plane shows {percent(share)} of the differences between them; what it cannot "
        "show may lie between segments that look close."
        f"</p><p>{_axis(data, info, 0, ('right', 'left'))} {_axis(data, info, 1, ('up', 'down'))}"
    )


def _axis(data: ReportData, info: MapInfo, axis: int, ways: tuple[str, str]) -> str:
    grows, falls = (
        ", ".join(escape(data.columns[at].label) for at in columns)
        for columns in info.towards[axis]
    )
    parts = [f"more {grows}"] if grows else []
    parts += [f"less {falls}"] if falls else []
    if not parts:
        return f"{ways[0].capitalize()}: many columns at once."
    return f"Further {ways[0]}: {'; '.join(parts)}."


def _heat_note(shown: ReportData) -> str:
    text = (
        "Centres in the columns' own units; categories are shares of users. ▲ is clearly above the "
        "overall mean and ▼ clearly below (0.75 spreads or more), ▲▲ and ▼▼ are far from it (1.5 "
        "or more). A spread is the standard deviation over the grid."
    )
    if shown.columns_left_out:
        text += (
            f" The {len(shown.columns)} lines that differ most are shown, of columns and "
            f"categories; {shown.columns_left_out} more are in the JSON data and in centres.csv."
        )
    return text


def _curves(data: ReportData) -> str:
    silhouette = curve(data, "silhouette", title="Silhouette")
    loss = curve(data, "loss", title="Loss")
    return (
        f"<figure><figcaption>Silhouette: higher is better</figcaption>{silhouette}</figure>"
        f"<figure><figcaption>Loss: look for the bend</figcaption>{loss}</figure>"
    )


def _k_note(data: ReportData) -> str:
    return (
        f"The study asked for {data.asked} segments. The silhouette suggests "
        f"{data.suggested_k}: the smallest number within 0.01 of the best value. It is between 0 "
        "(segments blend) and 1 (segments are far apart). The loss is the mean squared distance of "
        "the grid's points to their centre."
    )


def _k_table(data: ReportData) -> str:
    rows = "".join(
        f'<tr><th scope="row">{item.k}</th><td>{fixed(item.silhouette, 3)}</td>'
        f"<td>{digits(item.loss, 4)}</td>"
        f"<td>{_remark(data, item)}</td></tr>"
        for item in data.segmentations
    )
    head = heads("Segments", "Silhouette", "Loss", "Remark")
    return table("Silhouette and loss by number of segments", head=head, body=rows)


def _remark(data: ReportData, item: SegmentationInfo) -> str:
    remarks = ["published"] if item.published else []
    if item.k == data.suggested_k:
        remarks.append("suggested")
    return ", ".join(remarks)


def _facts(data: ReportData) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in data.facts
    )
    return table("Run facts", body=rows, kind="facts")
