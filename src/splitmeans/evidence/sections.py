"""The parts that an archive record and an impact assessment share: the privacy facts as tables."""

from splitmeans.evidence.pages import Section
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.observers import MEANING
from splitmeans.privacy.accountant import cost_text
from splitmeans.study import Study
from splitmeans.wire.identity import PublicIdentity
from splitmeans.wire.slot import SERVER

_KEPT = (
    (
        "Rows of each organisation",
        "at that organisation, never elsewhere",
        "as long as that organisation keeps its table; the run makes no copy that outlives it",
    ),
    (
        "Blocks of a large table (home, spool)",
        "at that organisation, readable by its owner alone",
        "removed when the run ends or stops; after a crash at the next start",
    ),
    (
        "The run key and the state of a run (home)",
        "at each organisation",
        "erased when the run ends; without the key real records cannot be told from invented ones",
    ),
    (
        "The keys that messages of a run are sealed to (home, run-keys)",
        "at each participant, encrypted under its long-term key",
        "erased when the run ends; from then on no stolen long-term key opens a recorded message",
    ),
    (
        "Sealed messages (home, outbox)",
        "at each participant",
        "removed when the run has ended; their hashes stay",
    ),
    (
        "Sealed messages (mailbox or relay)",
        "with its operator; only the receiver can open them",
        "until that operator removes them: do so when every participant has the result "
        "(`splitmeans relay study purge`)",
    ),
    (
        "The result: segments, sizes, noisy counts, statement, certificate",
        "at every participant",
        "as the participants agree; it holds no row and no identifier",
    ),
    (
        "The ledger (home)",
        "at each organisation that has data",
        "as long as the data is used for any study: it keeps later runs within the limit",
    ),
    (
        "This archive, once made",
        "with everyone it was given to",
        "as your rules for records say",
    ),
    (
        "Segments of an organisation's own people, if it makes such a file",
        "at that organisation",
        "personal data: like the table that they were made from",
    ),
)


def participants(study: Study) -> Section:
    """Return all participants with the keys by which the study knows them."""
    keys = study.public_keys

    def fingerprint(name: str) -> str:
        return PublicIdentity.from_text(keys[name]).fingerprint if name in keys else "none"

    rows = [
        (party.name, _part(study, len(party.columns)), fingerprint(party.name))
        for party in study.parties
    ]
    rows.append((SERVER, "combines what the organisations send; has no data", fingerprint(SERVER)))
    return Section(
        heading="Who takes part",
        head=("Name in the study", "Part", "Fingerprint of its key"),
        rows=tuple(rows),
    )


def _part(study: Study, n_columns: int) -> str:
    if study.counts_only:
        return "knows whom it has; none of its columns about people takes part"
    return f"holds {n_columns} column{'' if n_columns == 1 else 's'} about people"


def by_column(facts: PrivacyFacts) -> Section:
    """Return for every column of every party what is sent about it."""
    return Section(
        heading="What leaves each organisation, by column",
        text=(
            "No row, no value of a person and no identifier leaves an organisation. What leaves is "
            "listed here; random noise or invented records are added to all of it before it is "
            "sent, and the figures below say how much they hide, and from whom.",
        ),
        head=("Organisation", "Column", "What is agreed about it", "What is sent about it"),
        rows=tuple((one.party, one.column, one.agreed, one.sent) for one in facts.columns),
    )


def releases(facts: PrivacyFacts) -> Section:
    """Return every release with what it would cost alone."""
    return Section(
        heading="Messages that carry information about people",
        text=(
            "Each organisation sends these once in a run. A message that is lost on the way is "
            "sent again as it is, never recomputed. The figures of single messages do not add up "
            "to the total, which is computed for all of them together.",
        ),
        head=("From", "What", "Would cost alone, towards the server", "Called in the transcript"),
        rows=tuple(
            (one.party, one.means, cost_text(one.cost), one.message) for one in facts.releases
        ),
    )


def onlookers(facts: PrivacyFacts) -> Section:
    """Return who sees what, what can be concluded from it, and what that rests on."""
    runs = 1 if facts.series is None else facts.series.runs
    what = "The run has" if runs == 1 else f"All {runs} runs of the series together have"
    return Section(
        heading="Who can learn what",
        text=(
            f"{what} {facts.total_words}, computed for all messages of all organisations together. "
            "Other observers have other figures.",
            "Take any one person, and two cases that differ as stated: what happened, and what "
            "would have happened otherwise. An observer may know everything about all other "
            f"people. Then {MEANING}. Without looking it is 50 %.",
        ),
        head=(
            "Who",
            "Sees",
            "The two cases",
            "Bound",
            "Times as likely, at most",
            "Guesses right, at most",
        ),
        rows=tuple(
            (
                observer.who,
                observer.sees,
                bound.case,
                cost_text(bound.cost) if bound.cost else bound.text,
                bound.factor,
                bound.guess,
            )
            for observer in facts.observers
            for bound in observer.bounds
        ),
        notes=(
            *(f"Also, {one.who} sees {one.sees}." for one in facts.observers if not one.bounds),
            "These are the worst cases, for the person who is easiest to recognise.",
            "Guesses are an average: after some outcomes an observer is surer than that, after "
            "others less.",
            "The figures protect single people, not facts about groups, which are what the study "
            "is to find out.",
            "Other runs on the same people add to them; the ledger of each organisation keeps the "
            "sums.",
            *(f"This holds if {assumption}." for assumption in facts.assumptions),
            *(f"Note: {caveat}" for caveat in facts.caveats),
        ),
    )


def retention() -> Section:
    """Return the table."""
    return Section(
        heading="What is kept, where, and for how long",
        head=("What", "Where", "How long"),
        rows=_KEPT,
    )
