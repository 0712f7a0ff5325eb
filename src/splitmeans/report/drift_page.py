"""The part of the report about what changed since an earlier result."""

from splitmeans.figures import fixed, number
from splitmeans.insights.drift import Change, Drift
from splitmeans.report.words import THIN, breakable, escape, heads, percent, table, users

# The rest is in the JSON data.
_MOST_COLUMNS = 20


def drift_section(found: Drift | None) -> str:
    """Return the section, or nothing where no earlier result was given."""
    if found is None:
        return ""
    parts = [
        f'<p class="note">Then: {escape(found.old)}. Now: {escape(found.new)}.</p>',
        f"<p>About {users(found.users.old)} users then, {users(found.users.new)} now "
        f"({_change(found.users)}).</p>",
        _segments(found),
        _what_became(found),
        _counts(found),
        _columns(found),
        f'<p class="note">{escape(found.words)}</p>',
    ]
    inside = "\n".join(part for part in parts if part)
    return (
        '<section aria-labelledby="drift">\n<h2 id="drift">What changed</h2>\n'
        f"{inside}\n</section>\n"
    )


def _segments(found: Drift) -> str:
    if not found.segments:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(one.letter)}{_name(one.name)}</th>'
        f'<td class="number">{users(one.size.old)}</td>'
        f'<td class="number">{users(one.size.new)}</td>'
        f'<td class="number">{_change(one.size)}</td>'
        f'<td class="number">{_change(one.share, share=True)}</td>'
        f"<td>{escape(one.match or 'none')}</td>"
        f"<td>{', '.join(f'{escape(to)} {percent(part)}' for to, part in one.goes_to)}</td></tr>"
        for one in found.segments
    )
    head = (
        heads("Old segment")
        + heads("Then", "Now", "Change", "Change of its share", number=True)
        + heads("Matched with", "Its people's places are in")
    )
    return table("Segments of the old result, counted in both", head=head, body=rows)


def _name(name: str | None) -> str:
    return "" if name is None else f" ({escape(name)})"


def _what_became(found: Drift) -> str:
    texts = [f"{letter} was split into {', '.join(parts)}" for letter, parts in found.split]
    texts += [f"{', '.join(parts)} came together in {letter}" for letter, parts in found.merged]
    if found.unmatched:
        texts.append(f"new, matching no old one: {', '.join(found.unmatched)}")
    return "".join(f"<p>{escape(text[0].upper() + text[1:])}.</p>" for text in texts)


def _counts(found: Drift) -> str:
    if not found.overlap:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{breakable(name)}</th><td class="number">{users(one.old)}</td>'
        f'<td class="number">{users(one.new)}</td><td class="number">{_change(one)}</td></tr>'
        for name, one in found.overlap
    )
    head = heads("Users at exactly") + heads("Then", "Now", "Change", number=True)
    return table("Users by the organisations that they are at, then and now", head=head, body=rows)


def _columns(found: Drift) -> str:
    if not found.columns:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{breakable(one.column)}</th><td class="number">{number(one.old)}</td>'
        f'<td class="number">{number(one.new)}</td>'
        f'<td class="number">{fixed(one.spreads, 2)}</td></tr>'
        for one in found.columns[:_MOST_COLUMNS]
    )
    head = heads("Column") + heads("Mean then", "Mean now", "In spreads", number=True)
    inside = table("Means of columns, then and now", head=head, body=rows)
    return f"<details><summary>Means of columns, without intervals</summary>{inside}</details>"


def _change(one: Change, *, share: bool = False) -> str:
    """Return a change with its interval; of a share in per cent of all users."""
    scale, form, unit = (100.0, "+.1f", f"{THIN}%") if share else (1.0, "+,.0f", "")
    text = f"{one.change * scale:{form}}{unit}"
    if one.low is None or one.high is None:
        return text
    return f"{text} ({one.low * scale:{form}} to {one.high * scale:{form}})"
