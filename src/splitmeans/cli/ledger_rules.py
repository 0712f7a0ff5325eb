"""What a ledger says beside sums: data sets, limits of the home, guards, open requests."""

from typing import Any

from splitmeans.privacy.four_eyes import words_of
from splitmeans.privacy.ledger_rules import Book, Entry


def rules_lines(book: Book) -> list[str]:
    """Return what holds in a home, a line each."""
    lines = [f"data set {name}: {who}" for name, who in sorted(book.data_sets.people.items())]
    lines += [f"{name} is part of {whole}" for name, whole in sorted(book.data_sets.owners.items())]
    lines += [f"{one} and {two} are other people" for one, two in sorted(book.data_sets.apart)]
    if (limit := book.home_limit) is not None:
        lines.append(
            f"limit of every data set without one of its own: epsilon {limit.epsilon:g}, delta "
            f"{limit.delta:g}"
        )
    if book.guards.keys:
        state = "on" if book.guards.is_on else "off"
        lines.append(f"four eyes: {state}; guards: {', '.join(sorted(book.guards.keys))}")
    if book.restored is not None:
        lines.append(f"restored from a {book.restored}: nothing is charged until it is recovered")
    lines += [
        f"request {number} by {entry.signer} waits for another guard: {words_of(entry)}"
        for number, entry in sorted(book.guards.requests.items())
    ]
    return lines


def rules_mapping(book: Book) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "data_sets": dict(book.data_sets.people),
        "parts": dict(book.data_sets.owners),
        "apart": sorted(book.data_sets.apart),
        "home_limit": None if book.home_limit is None else vars(book.home_limit),
        "four_eyes": book.guards.is_on,
        "guards": {name: key.fingerprint for name, key in book.guards.keys.items()},
        "requests": sorted(book.guards.requests),
        "restored": book.restored,
    }


def entry_words(entry: Entry) -> str:
    """Return what an entry is about, short enough for a table."""
    if entry.kind == "guard" or entry.act == "guard":
        return f"key of {entry.party}"
    words = [entry.act, entry.what] if entry.kind == "request" else [entry.what]
    if entry.signer is not None:
        words.append(f"signed by {entry.signer}")
    if entry.note is not None and not entry.note.startswith("people "):
        words.append(f"({entry.note})")
    return " ".join(word for word in words if word)
