"""Several keys by which users may be known: which one a study matches them by.

One key for the whole study, the first in its order that every party has. It follows from the study
alone, so every participant comes to the same, and a person is one user as with a single id. Which
key a row happens to have decides nothing: matching some users by one key and others by another
would make two users of a person who has both at one party and one of them at another, and the
stated epsilon would not hold for that person (obligation O1).
"""

from dataclasses import replace

from splitmeans.errors import StudyError
from splitmeans.study.id_rules import IdKey, IdRules
from splitmeans.study.parties import PartySpec


def matching_key(rules: IdRules, parties: tuple[PartySpec, ...]) -> IdKey:
    """Return the first key that all parties have.

    Raises:
        StudyError: If there is none, or a party has a key that the study does not list.
    """
    listed = [key.name for key in rules.keys]
    for party in parties:
        for held in party.id_columns:
            if held.key not in listed:
                raise StudyError(
                    f"party {party.name!r} has the key {held.key!r} in its id_columns, which "
                    f"ids.keys does not list; it lists {', '.join(listed)}"
                )
    for key in rules.keys:
        if all(any(held.key == key.name for held in party.id_columns) for party in parties):
            return key
    has = "; ".join(
        f"{party.name}: {', '.join(held.key for held in party.id_columns) or 'none'}"
        for party in parties
    )
    raise StudyError(
        "no key of ids.keys is in the id_columns of all parties, so their users cannot be "
        f"matched ({has}); users are matched by one key that everybody has"
    )


def with_matching_columns(
    rules: IdRules | None, parties: tuple[PartySpec, ...]
) -> tuple[PartySpec, ...]:
    """Return the parties, each with its column of the matching key as its id column."""
    if rules is None or not rules.keys:
        if any(party.id_columns for party in parties):
            raise StudyError("id_columns of a party need ids.keys, which says what their keys are")
        return parties
    key = matching_key(rules, parties)
    found = []
    for party in parties:
        column = next(held.column for held in party.id_columns if held.key == key.name)
        if party.id_column not in ("id", column):
            raise StudyError(
                f"party {party.name!r} must have no id_column beside its id_columns: users are "
                f"matched by the key {key.name!r}, its column {column!r}"
            )
        found.append(replace(party, id_column=column))
    return tuple(found)
