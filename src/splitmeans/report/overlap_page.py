"""The part of the report about who is at which parties, where user sets differ."""

from splitmeans.intervals.overlap import Count, Overlap
from splitmeans.report.words import breakable, escape, heads, interval_text, percent, table, users

# More ways to be at some parties than this are in the JSON data alone.
_MOST_PATTERNS = 32


def overlap_section(found: Overlap | None, *, first: bool = False) -> str:
    """Return the section, or nothing where a run does not say."""
    if found is None:
        return ""
    kind = ' class="first"' if first else ""
    return (
        f'<section aria-labelledby="overlap"{kind}>\n<h2 id="overlap">Who is where</h2>\n'
        f"{_patterns(found)}\n{_pairs(found)}\n"
        '<p class="note">Counted with noise, with 95\u202f% intervals; it follows from what was '
        "published and costs no privacy.</p>\n</section>\n"
    )


def _patterns(found: Overlap) -> str:
    n_parties = len(found.parties)
    rows = "".join(
        _row(_at(count, n_parties=n_parties), count) for count in found.patterns[:_MOST_PATTERNS]
    )
    rows += "".join(
        _row(f"{breakable(count.parties[0])}, and maybe others", count) for count in found.parties
    )
    rows += _row("one organisation or more", found.everyone)
    left = len(found.patterns) - _MOST_PATTERNS
    more = f'<p class="note">{left:,} more are in the JSON data.</p>' if left > 0 else ""
    head = heads("Users at") + heads("Users", "95\u202f% interval", number=True)
    return table("Users by the organisations that they are at", head=head, body=rows) + more


def _at(count: Count, *, n_parties: int) -> str:
    if len(count.parties) == n_parties:
        return "all organisations"
    return f"{' and '.join(breakable(name) for name in count.parties)} only"


def _row(name: str, count: Count) -> str:
    ends = (count.low, count.high)
    return (
        f'<tr><th scope="row">{name}</th><td class="number">{users(count.users, ends)}</td>'
        f'<td class="number">{interval_text(ends)}</td></tr>'
    )


def _pairs(found: Overlap) -> str:
    if not found.shares:
        return ""
    shared = {frozenset(count.parties): count for count in found.pairs}
    rows = "".join(
        f'<tr><th scope="row">{breakable(one.of)}</th><td>{escape(one.at)}</td>'
        f'<td class="number">{_both(shared[frozenset((one.of, one.at))])}</td>'
        f'<td class="number">{percent(one.share)}</td>'
        f'<td class="number">{percent(one.low)} to {percent(one.high)}</td></tr>'
        for one in found.shares
    )
    head = heads("Of the users of", "also at") + heads(
        "Users", "Share", "95\u202f% interval", number=True
    )
    inside = table("Shared users of two organisations", head=head, body=rows)
    return f"<h3>Two at a time</h3>\n{inside}"


def _both(count: Count) -> str:
    return users(count.users, (count.low, count.high))
