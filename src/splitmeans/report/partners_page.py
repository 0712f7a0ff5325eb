"""The part of the report about the parties: what each adds, and how well it can label its users."""

from splitmeans.insights.own_labels import Bin, OwnLabels
from splitmeans.insights.partners import Partners
from splitmeans.report.data import ReportData
from splitmeans.report.words import breakable, escape, heads, percent, table

# As many lines tell which columns matter; all of them are in the JSON data.
_MOST_COLUMNS = 40


def partners_page(data: ReportData) -> str:
    """Return the section's content, for the published segments."""
    if data.partners is None:
        return ""
    k = data.published.k
    parts = [
        f"<p>For the {k} published segments, worked out on the published grid; it costs no "
        f"privacy. Together they explain {percent(data.partners.explained)} of all differences "
        "between users.</p>",
        _party_table(data.partners, data.own_labels),
        _words(data),
        _label_table(data.own_labels),
        _column_table(data.partners),
    ]
    return "\n".join(part for part in parts if part)


def _party_table(found: Partners, labels: tuple[OwnLabels, ...]) -> str:
    right = {one.party: percent(one.right) for one in labels}
    rows = "".join(
        f'<tr><th scope="row">{breakable(one.party)}</th>'
        f'<td class="number">{percent(one.separation)}</td>'
        f'<td class="number">{percent(one.alone)}</td><td class="number">{percent(one.same)}</td>'
        f'<td class="number">{right.get(one.party, "not known")}</td></tr>'
        for one in found.parties
    )
    head = heads("Party") + heads(
        "Carries of the separation",
        "Alone would explain",
        "Alone would place right",
        "Can label right",
        number=True,
    )
    return table("What each party adds", head=head, body=rows, kind="parties")


def _words(data: ReportData) -> str:
    text = (
        "<b>Carries</b>: its columns' part of the differences between segments. <b>Alone</b>: as "
        "many segments from its own columns would explain that part of all differences, and would "
        "put that part of users into the right common segment."
    )
    if data.own_labels:
        guessing = percent(data.own_labels[0].guessing)
        text += (
            " <b>Can label right</b>: how often the likeliest segment of a user, from the party's "
            "own columns and the published grid, is expected to be the user's; the largest segment "
            f"for everybody would be right for {guessing}."
        )
    return f'<p class="note">{text}</p>'


def _label_table(labels: tuple[OwnLabels, ...]) -> str:
    if not labels:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{breakable(one.party)}</th>'
        f"<td>{_between(part)}</td>"
        f'<td class="number">{percent(part.users)}</td><td class="number">{percent(part.said)}</td>'
        f'<td class="number">{percent(part.right)}</td></tr>'
        for one in labels
        for part in one.bins
    )
    head = heads("Party", "How sure its label is") + heads(
        "Users", "Said", "Expected to be right", number=True
    )
    inside = table("How sure labels are, and how often right", head=head, body=rows, kind="parties")
    return f"<details><summary>How sure labels from own columns are</summary>{inside}</details>"


def _between(part: Bin) -> str:
    if part.low == 0:
        return f"below {percent(part.high)}"
    return f"{percent(part.low)} to {percent(part.high)}"


def _column_table(found: Partners) -> str:
    ordered = sorted(found.columns, key=lambda one: -one.distance)
    rows = "".join(
        f'<tr><th scope="row">{breakable(one.column)}</th><td>{escape(one.party)}</td>'
        f'<td class="number">{percent(one.distance)}</td>'
        f'<td class="number">{percent(one.separation)}</td></tr>'
        for one in ordered[:_MOST_COLUMNS]
    )
    head = heads("Column", "Party") + heads(
        "Share of the distance", "Share of the separation", number=True
    )
    inside = table("What each column adds", head=head, body=rows)
    left = len(ordered) - _MOST_COLUMNS
    more = f'<p class="note">{left} more are in the JSON data.</p>' if left > 0 else ""
    return (
        "<details><summary>Each column's share</summary>"
        '<p class="note">Share of the distance: how much of all differences between users k-means '
        "sees in this column; a column that has most of it decides the segments.</p>"
        f"{inside}{more}</details>"
    )
